import type { IncomingMessage } from 'node:http';
import { allowsName, bearerOf, hostName, sameSecret } from '../../support/http/access.js';

export interface AccessOptions {
  readonly token: string;
  /** Names under which the server may be asked for, beside `localhost` and addresses. */
  readonly allowedHosts: readonly string[];
  /** The address it listens on. */
  readonly host: string;
}

/** Why a request is refused: the status, and a text for the reader. */
export interface Refusal {
  readonly status: 401 | 403 | 405 | 421;
  readonly why: string;
}

/**
 * Whether a request may see the dashboard; undefined if so.
 *
 * The name it asks for must be one of ours: another site whose name was made to point here asks under its own. The
 * page it comes from must be ours. And it must have the token, in the URL or as a bearer.
 */
export function refusalOf(request: IncomingMessage, url: URL, options: AccessOptions): Refusal | undefined {
  if (request.method !== 'GET' && request.method !== 'HEAD') return { status: 405, why: 'only GET' };
  const host = request.headers.host ?? '';
  if (!allowsName(hostName(host), options.host, options.allowedHosts))
    return { status: 421, why: 'not known under this name; see allowedHosts' };
  const { origin } = request.headers;
  if (origin !== undefined && !/^https?:\/\//.test(origin)) return { status: 403, why: 'not from this page' };
  if (origin !== undefined && origin.replace(/^https?:\/\//, '') !== host) {
    return { status: 403, why: 'not from this page' };
  }
  const site = request.headers['sec-fetch-site'];
  // Following a link from another site is allowed; scripts of other sites are not.
  const follows = request.headers['sec-fetch-mode'] === 'navigate';
  if (site !== undefined && site !== 'same-origin' && site !== 'none' && !follows) {
    return { status: 403, why: 'not from this page' };
  }
  const given = bearerOf(request.headers.authorization) ?? url.searchParams.get('token') ?? '';
  if (!sameSecret(given, options.token)) {
    return { status: 401, why: 'open the address as it was printed, with its token' };
  }
  return undefined;
}
