import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { HttpError } from './httpError.js';

type Decompress = (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Buffer>;

/** Node has zstd from 22.15 on. */
const zstd = (zlib as { zstdDecompress?: (...args: never[]) => void }).zstdDecompress;

const DECOMPRESS: ReadonlyMap<string, Decompress | undefined> = new Map(
  Object.entries({
    gzip: promisify(zlib.gunzip),
    zstd: typeof zstd === 'function' ? (promisify(zstd) as unknown as Decompress) : undefined,
  }),
);

/**
 * The whole body, decompressed.
 *
 * @throws HttpError 413 when it is larger than `limitBytes`, packed or unpacked; 415 for an encoding this Node lacks.
 */
export async function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > limitBytes) throw tooLarge(limitBytes);
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > limitBytes) throw tooLarge(limitBytes);
    parts.push(part);
  }
  const packed = parts.length === 1 ? parts[0]! : Buffer.concat(parts, size);
  return decompress(packed, request.headers['content-encoding'], limitBytes);
}

async function decompress(packed: Buffer, encoding: string | undefined, limitBytes: number): Promise<Buffer> {
  if (encoding === undefined || encoding === 'identity') return packed;
  const unpack = DECOMPRESS.get(encoding.toLowerCase());
  if (unpack === undefined) throw new HttpError(415, `content encoding ${encoding} is not supported here`);
  try {
    return await unpack(packed, { maxOutputLength: limitBytes });
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limitBytes);
    throw new HttpError(400, `the body is no valid ${encoding} stream`);
  }
}

const tooLarge = (limitBytes: number): HttpError =>
  new HttpError(413, `the request body is larger than ${limitBytes} bytes`, { connection: 'close' });
