import type { IncomingMessage, ServerResponse } from 'node:http';
import { allowsName, bearerOf, hostName, sameSecret } from '../../support/http/access.js';
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

/**
 * Whether a request may be read at all. A web page that rebinds its own name to this machine sends that name as Host,
 * and one that posts from elsewhere sends its Origin: both are refused, key or not.
 *
 * @throws GatewayError 403 for a foreign Host or Origin
 */
export function checkSource({ headers }: IncomingMessage, { host, allowedHosts }: Access): void {
  const asked = hostName(headers.host ?? '');
  const allowed = (name: string): boolean => allowsName(name, host, allowedHosts);
  if (!allowed(asked)) throw new GatewayError(403, 'this Host header is not allowed here');
  const { origin } = headers;
  if (origin !== undefined && !allowed(URL.canParse(origin) ? new URL(origin).hostname : '')) {
    throw new GatewayError(403, 'this Origin is not allowed here');
  }
}

/** The key that a request brings. @throws GatewayError 401 without a known one */
export function keyOf({ headers }: IncomingMessage, { keys }: Access): GatewayKey {
  const given = bearerOf(headers.authorization) ?? headers['x-api-key'];
  // All are compared: how long it takes tells nothing about the place of the right one.
  const found = typeof given === 'string' ? keys.filter(({ key }) => sameSecret(given, key))[0] : undefined;
  if (found === undefined) throw new GatewayError(401, 'a valid API key is needed');
  return found;
}

/**
 * Lets a web page read the answer, and tells it before it asks that it may. Only for pages whose origin was allowed:
 * everyone else was refused before this.
 *
 * @returns whether the request was only the browser's question, which is answered then
 */
export function answerBrowser({ method, headers }: IncomingMessage, response: ServerResponse): boolean {
  const { origin } = headers;
  if (origin === undefined) return false;
  response.setHeader('access-control-allow-origin', origin);
  response.setHeader('vary', 'origin');
  response.setHeader('access-control-expose-headers', 'x-request-id, retry-after, x-gateway-warning');
  if (method !== 'OPTIONS') return false;
  response.setHeader('access-control-allow-methods', 'GET, POST');
  // Clients send headers that name their version, so whatever the browser asks for is allowed.
  response.setHeader('access-control-allow-headers', headers['access-control-request-headers'] ?? '*');
  response.setHeader('access-control-max-age', '600');
  response.writeHead(204).end();
  return true;
}
