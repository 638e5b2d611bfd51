import { TransportFailure } from './Transport.js';

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const NO_VALUE = /[^\t\x20-\x7e\x80-\xff]/;

/** Whether a text can be the name of a header. */
export const isHeaderName = (text: string): boolean => NAME.test(text);

/** Whether a text can be the value of a header: one line, one byte per character. */
export const isHeaderValue = (text: string): boolean => !NO_VALUE.test(text);

/** The failure of a request with a header that cannot be sent; undefined where all can. */
export function headerFailure(headers: Readonly<Record<string, string>>): TransportFailure | undefined {
  for (const name in headers)
    if (!isHeaderName(name) || !isHeaderValue(headers[name]!))
      return new TransportFailure('request', `invalid ${JSON.stringify(name)} header`);
  return undefined;
}

/** They say how a message is carried, which is up to the connection. */
const RESERVED = new Set(['content-length', 'transfer-encoding', 'keep-alive', 'upgrade', 'expect']);

/** Whether a header, by its name in lower case, is written by the connection and by nobody else. */
export const isReserved = (name: string): boolean => RESERVED.has(name);
