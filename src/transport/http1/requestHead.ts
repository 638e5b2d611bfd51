import { isHeaderName, isHeaderValue } from '../headerText.js';
import { TransportFailure, type TransportRequest } from '../Transport.js';

const NO_PATH = /[^\x21-\xff]/;
/** They say how a message is carried, which is up to the connection. */
const RESERVED = new Set(['content-length', 'transfer-encoding', 'keep-alive', 'upgrade', 'expect']);
const CONNECTION = /^(?:close|keep-alive)$/i;

/** Whether a header, by its name in lower case, is written by the connection and by nobody else. */
export const isReserved = (name: string): boolean => RESERVED.has(name);

/**
 * The head of a request for a server at `host`, up to its length: text of one byte per character, without the last line and the empty
 * one after it, which {@link endOfHead} writes.
 *
 * @throws TransportFailure when a header or the path cannot be sent
 */
export function requestHead({ method, headers }: TransportRequest, path: string, host: string): string {
  if (NO_PATH.test(path)) throw new TransportFailure('request', 'invalid request path');
  let head = `${method} ${path} HTTP/1.1\r\n`;
  if (headers['host'] === undefined) head += `host: ${host}\r\n`;
  if (headers['connection'] === undefined) head += 'connection: keep-alive\r\n';
  for (const name in headers) {
    const value = headers[name]!;
    const isRefused = name === 'connection' ? !CONNECTION.test(value) : isReserved(name);
    if (isRefused || !isHeaderName(name) || !isHeaderValue(value))
      throw new TransportFailure('request', `invalid ${JSON.stringify(name)} header`);
    head += `${name}: ${value}\r\n`;
  }
  return head;
}

/** The end of a head, for a body of so many bytes. */
export const endOfHead = (method: TransportRequest['method'], contentLength: number): string =>
  contentLength === 0 && method === 'GET' ? '\r\n' : `content-length: ${contentLength}\r\n\r\n`;
