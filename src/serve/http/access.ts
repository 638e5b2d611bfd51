import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { GatewayError } from './GatewayError.js';

/** A key, and what its holder may do. */
export interface GatewayKey {
  /** What callers send; at least 8 characters. */
  readonly key: string;
  /** Stands for the key in logs and metrics. Default: its place in the list, `key-1`. */
  readonly name?: string;
  /** Most requests at once with this key; more are refused with 429. Default: only the limit of the gateway. */
  readonly maxRequests?: number;
  /** The names that may be given as `model`. Default: all. */
  readonly models?: readonly string[];
}

export interface Access {
  readonly keys: readonly GatewayKey[];
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
 * @throws GatewayError 403 for a foreign Host or Origin
 */
export function checkSource({ headers }: IncomingMessage, { host, allowedHosts }: Access): void {
  const asked = nameOf(headers.host ?? '');
  const allowed = (name: string): boolean =>
    allowedHosts.includes(name) || isLoopback(name) || (!isLoopback(host) && isAddress(name));
  if (!allowed(asked)) throw new GatewayError(403, 'this Host header is not allowed here');
  const { origin } = headers;
  if (origin !== undefined && !allowed(URL.canParse(origin) ? new URL(origin).hostname : '')) {
    throw new GatewayError(403, 'this Origin is not allowed here');
  }
}

/** The key that a request brings. @throws GatewayError 401 without a known one */
export function keyOf({ headers }: IncomingMessage, { keys }: Access): GatewayKey {
  const bearer = /^Bearer\s+(.+)$/i.exec(headers.authorization ?? '')?.[1];
  const given = bearer ?? headers['x-api-key'];
  const found = typeof given === 'string' ? match(given, keys) : undefined;
  if (found === undefined) throw new GatewayError(401, 'a valid API key is needed');
  return found;
}

const nameOf = (header: string): string => header.replace(/:\d+$/, '').toLowerCase();

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
const digests = new WeakMap<GatewayKey, Buffer>();

/** Compares secrets of any length in a time that tells nothing about them. */
function match(given: string, keys: readonly GatewayKey[]): GatewayKey | undefined {
  const wanted = digest(given);
  return keys.filter((key) => {
    const known = digests.get(key) ?? digest(key.key);
    digests.set(key, known);
    return timingSafeEqual(wanted, known);
  })[0];
}
