import { createHash, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';

/** Whether a name or address can be reached from this machine only. */
export const isLoopback = (host: string): boolean => {
  const address = withoutBrackets(host);
  return address === 'localhost' || address === '::1' || /^127(\.\d{1,3}){3}$/.test(address);
};

/** The name in a Host header, without its port. */
export const hostName = (header: string): string => header.replace(/:\d+$/, '').toLowerCase();

/**
 * Whether a server that listens on `boundHost` may be asked for under this name. A web page that makes its own name point to
 * this machine sends that name as Host, and is refused. An address cannot be made to point elsewhere.
 */
export function allowsName(name: string, boundHost: string, allowedHosts: readonly string[] = []): boolean {
  if (isLoopback(name) || allowedHosts.some((allowed) => allowed.toLowerCase() === name)) return true;
  return !isLoopback(boundHost) && isIP(withoutBrackets(name)) !== 0;
}

const withoutBrackets = (host: string): string => host.replace(/^\[(.*)\]$/, '$1');

/** The token of an Authorization header. */
export const bearerOf = (authorization: string | undefined): string | undefined =>
  /^Bearer\s+(.+)$/i.exec(authorization ?? '')?.[1];

/** Compares secrets of any length in a time that tells nothing about them. */
export function sameSecret(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
