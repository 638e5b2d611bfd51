import { ValidationError } from '../wire/tinkerError.js';

export const DEFAULT_BASE_URL = 'https://tinker.thinkingmachines.dev/services/tinker-prod';

/** Where the service lives: an origin for the sockets and a prefix for every path. */
export interface BaseUrl {
  /** Normalised, without a trailing slash. */
  readonly href: string;
  readonly origin: string;
  /** Empty, or a path without a trailing slash. */
  readonly prefix: string;
}

/**
 * The base URL of the argument, of `TINKER_BASE_URL`, or the hosted service; empty counts as unset.
 *
 * @throws ValidationError when the text is no http(s) URL.
 */
export function resolveBaseUrl(argument: string | undefined, environment: string | undefined): BaseUrl {
  const text = [argument, environment, DEFAULT_BASE_URL].find(
    (candidate) => candidate !== undefined && candidate !== '',
  )!;
  if (!URL.canParse(text)) {
    const shown = text.replace(/\/\/.*@/, '//[redacted]@');
    throw new ValidationError(`the base URL is not a URL: ${JSON.stringify(shown)}`);
  }
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new ValidationError(`the base URL must start with http:// or https://, got ${url.protocol}//`);
  }
  if (url.username !== '' || url.password !== '')
    throw new ValidationError('the base URL must not carry a user name or password');
  if (url.search !== '' || url.hash !== '')
    throw new ValidationError('the base URL must not carry a query or fragment');
  const prefix = url.pathname.replace(/\/+$/, '');
  return { href: url.origin + prefix, origin: url.origin, prefix };
}
