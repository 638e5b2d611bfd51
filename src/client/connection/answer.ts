import { isLeft } from 'fp-ts/lib/Either.js';
import type * as t from 'io-ts';
import { map, type OperatorFunction } from 'rxjs';
import type { TransportResponse } from '../../transport/Transport.js';
import { describeErrors } from '../../wire/record.js';
import { APIResponseValidationError } from '../errors.js';

/** The body as JSON where it is JSON, else as text. */
export function parseBody({ headers, body }: TransportResponse): unknown {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.length);
  const text = bytes.toString('utf8');
  if (!/\bjson\b/.test(headers['content-type'] ?? '') && !/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** The body of a response, decoded. @throws APIResponseValidationError naming what is wrong in it. */
export function readJson<A>(response: TransportResponse, codec: t.Decoder<unknown, A>, path: string): A {
  const decoded = codec.decode(parseBody(response));
  if (isLeft(decoded)) {
    throw new APIResponseValidationError(
      `/api/v1/${path} returned an unexpected body: ${describeErrors(decoded.left)}`,
    );
  }
  return decoded.right;
}

/** The body of each response, decoded. */
export const decodeJson = <A>(codec: t.Decoder<unknown, A>, path: string): OperatorFunction<TransportResponse, A> =>
  map((response) => readJson(response, codec, path));
