import type { IncomingMessage } from 'node:http';
import { allowsName, bearerOf, hostName, sameSecret } from '../../support/http/access.js';
import { GatewayError } from './GatewayError.js';

export interface Access {
  readonly apiKey: string;
  readonly host: string;
  /** Names under which the gateway may be asked for, beside loopback names and addresses. */
  readonly allowedHosts: readonly string[];
}

/**
 * Whether a request may be read at all. A web page that rebinds its own name to this machine sends that name as Host,
 * and one that posts from elsewhere sends its Origin: both are refused, key or not.
 *
 * @throws GatewayError 403 for a foreign Host or Origin, 401 without the key
 */
export function checkAccess({ headers }: IncomingMessage, { apiKey, host, allowedHosts }: Access): void {
  const asked = hostName(headers.host ?? '');
  const allowed = (name: string): boolean => allowsName(name, host, allowedHosts);
  if (!allowed(asked)) throw new GatewayError(403, 'this Host header is not allowed here');
  const { origin } = headers;
  if (origin !== undefined && !allowed(URL.canParse(origin) ? new URL(origin).hostname : '')) {
    throw new GatewayError(403, 'this Origin is not allowed here');
  }
  const given = bearerOf(headers.authorization) ?? headers['x-api-key'];
  if (typeof given !== 'string' || !sameSecret(given, apiKey)) throw new GatewayError(401, 'a valid API key is needed');
}
