import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { readBody as readWhole } from '../../support/http/readBody.js';
import type { ByteBudget } from './byteBudget.js';
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

/** Bodies up to this size, which heartbeats and polls have, never wait for room. */
const SMALL_BYTES = 64 * 1024;
/** Maximum DEFLATE expansion ratio. */
const MOST_FROM_ONE = 1032;

export interface ReadBody {
  readonly bytes: Buffer;
  /** To be called when the bytes are no longer needed. */
  readonly release: () => void;
}

/**
 * The whole body, decompressed, once there is room for it in the budget.
 *
 * @throws HttpError 413 when it is larger than `limitBytes`, packed or unpacked; 415 for an encoding this Node lacks.
 */
export async function readBody(request: IncomingMessage, limitBytes: number, budget: ByteBudget): Promise<ReadBody> {
  const declared = Number(request.headers['content-length'] ?? limitBytes);
  if (declared > limitBytes) throw tooLarge(limitBytes);
  const most = Math.min(limitBytes, declared * (growth.get(encodingOf(request)) ?? Infinity));
  const release = most <= SMALL_BYTES ? () => undefined : await budget.take(most);
  try {
    return { bytes: await readAll(request, limitBytes), release };
  } catch (error) {
    release();
    throw error;
  }
}

const encodingOf = ({ headers }: IncomingMessage): string => headers['content-encoding']?.toLowerCase() ?? 'identity';
const growth: ReadonlyMap<string, number> = new Map([
  ['identity', 1],
  ['gzip', MOST_FROM_ONE],
]);

async function readAll(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  const packed = await readWhole(request, limitBytes, { tooLarge, incomplete });
  return decompress(packed, encodingOf(request), limitBytes);
}

async function decompress(packed: Buffer, encoding: string, limitBytes: number): Promise<Buffer> {
  if (encoding === 'identity') return packed;
  const unpack = DECOMPRESS.get(encoding);
  if (unpack === undefined) throw new HttpError(415, `content encoding ${encoding} is not supported here`);
  try {
    return await unpack(packed, { maxOutputLength: limitBytes });
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limitBytes);
    throw new HttpError(400, `the body is not a valid ${encoding} stream`);
  }
}

const tooLarge = (limitBytes: number): HttpError =>
  new HttpError(413, `the request body is larger than ${limitBytes} bytes`, { connection: 'close' });

const incomplete = (): HttpError => new HttpError(400, 'the request body is not complete');
