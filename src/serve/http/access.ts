import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { GatewayError } from './GatewayError.js';

export interface Access {
  readonly apiKey: string;
  readonly host: string;
  /** Names under which the gateway may be asked for, beside loopback names and addresses. */
  readonly allowedHosts: readonly string[];
}

const isLoopback = (name: string): boolean =>
  name === 'localhost' || name === '[::1]' || name === '::1' || /^127(\.\d{1,3}){3}$/.test(name);
const isAddress = (name: string): boolean => /^\d{1,3}(\.\d{1,3}){3}$/.test(name) || name.startsWith('[');

/**
 * Whether a request may be read at all. A web page that rebinds its own name to this machine sends that name as Host,
 * and one that posts from elsewhere sends its Origin: both are refused, key or not.
 *
 * @throws GatewayError 403 for a foreign Host or Origin, 401 without the key
 */
export function checkAccess({ headers }: IncomingMessage, { apiKey, host, allowedHosts }: Access): void {
  const asked = nameOf(headers.host ?? '');
  const allowed = (name: string): boolean =>
    allowedHosts.includes(name) || isLoopback(name) || (!isLoopback(host) && isAddress(name));
  if (!allowed(asked)) throw new GatewayError(403, 'this Host header is not allowed here');
  const { origin } = headers;
  if (origin !== undefined && !allowed(URL.canParse(origin) ? new URL(origin).hostname : '')) {
    throw new GatewayError(403, 'this Origin is not allowed here');
  }
  const bearer = /^Bearer\s+(.+)$/i.exec(headers.authorization ?? '')?.[1];
  const given = bearer ?? headers['x-api-key'];
  if (typeof given !== 'string' || !same(given, apiKey)) throw new GatewayError(401, 'a valid API key is needed');
}

const nameOf = (header: string): string => header.replace(/:\d+$/, '').toLowerCase();

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
/** The key that was compared last: a gateway has one. */
let known: { readonly key: string; readonly digest: Buffer } | undefined;

/** Compares secrets of any length in a time that tells nothing about them. */
function same(given: string, key: string): boolean {
  if (known?.key !== key) known = { key, digest: digest(key) };
  return timingSafeEqual(digest(given), known.digest);
}
