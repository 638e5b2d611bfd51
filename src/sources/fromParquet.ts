import { open } from 'node:fs/promises';
import * as zlib from 'node:zlib';
import { type AsyncBuffer, type Compressors, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import type { Observable } from 'rxjs';
import { messageOf } from '../support/messageOf.js';
import { fromRowBatches } from './fromRowBatches.js';
import { filePath } from './reading/readBytes.js';
import { RowTally } from './internal/rowTally.js';
import type { RowOptions } from './RowOptions.js';
import { SourceError } from './SourceError.js';

/** Options of `fromParquet`. */
export interface ParquetOptions<T> extends RowOptions<T> {
  /** The columns to read. Default: all. */
  readonly columns?: readonly string[];
}

/** `PAR1` at both ends and a length between them. */
const SHORTEST = 12;

/**
 * The rows of a Parquet file as objects, in order, as fast as demand allows.
 *
 * ```ts
 * fromParquet<{ messages: Message[] }>('train-00000-of-00001.parquet', { columns: ['messages'] })
 * ```
 * Reads uncompressed, snappy, gzip and brotli pages, and zstd if Node supports it. 64-bit integers become numbers where they
 * fit exactly, else stay bigints. There are no lines: a bad row (one that `decode` refuses) is named by its number,
 * counted from 1. A file that is no Parquet is a {@link SourceError}. Pauses between rows and between row groups, and
 * holds one row group: write files with row groups of a few thousand rows.
 */
export function fromParquet<T = Record<string, unknown>>(
  path: string | URL,
  options: ParquetOptions<T> = {},
): Observable<T> {
  return fromRowBatches((signal) => rowGroups(filePath(path), signal, options), { name: 'fromParquet' });
}

async function* rowGroups<T>(
  path: string,
  signal: AbortSignal,
  options: ParquetOptions<T>,
): AsyncGenerator<Iterable<T>> {
  const tally = new RowTally<T>(path, options);
  const handle = await open(path).catch((cause: unknown) => fail(path, cause));
  try {
    const { size } = await handle.stat();
    tally.totalBytes = size;
    if (size < SHORTEST) throw new SourceError(path, size === 0 ? 'the file is empty' : 'not a Parquet file');
    const read = async (start: number, end: number): Promise<ArrayBuffer> => {
      // Looked at before memory is asked for: a damaged file can name any place and any length.
      if (!(start >= 0 && start <= end && end <= size)) throw new Error(`damaged: bytes ${start} to ${end} of ${size}`);
      const bytes = new Uint8Array(end - start);
      const { bytesRead } = await handle.read(bytes, 0, bytes.length, start);
      tally.bytes += bytesRead;
      return bytes.buffer;
    };
    const file: AsyncBuffer = {
      byteLength: size,
      slice: (start, end = size) => tended(read(start, end)),
    };
    const metadata = await parquetMetadataAsync(file).catch((cause: unknown) => fail(path, cause));
    const missing = options.columns?.find((column) => !metadata.schema.some(({ name }) => name === column));
    if (missing !== undefined) throw new SourceError(path, `has no column '${missing}'`);
    let rowStart = 0;
    for (const group of metadata.row_groups) {
      if (signal.aborted) return;
      const rowEnd = rowStart + Number(group.num_rows);
      const short = group.columns.find(({ meta_data: column }) => column && column.num_values < group.num_rows);
      if (short !== undefined) throw new SourceError(path, 'damaged: a column has fewer values than there are rows');
      const rows = await parquetReadObjects({
        file,
        metadata,
        rowStart,
        rowEnd,
        compressors,
        ...(options.columns === undefined ? {} : { columns: [...options.columns] }),
      }).catch((cause: unknown) => fail(path, cause));
      yield rowsOf(rows, rowStart, tally);
      rowStart = rowEnd;
      tally.report(false);
    }
    tally.bytes = size;
    tally.report(true);
  } finally {
    await handle.close();
  }
}

/**
 * A promise whose failure, and that of everything made of it, is never an unhandled rejection. In a damaged file hyparquet finds one fault and
 * lets go of other columns it is still reading: their faults would end the process.
 */
function tended<T>(promise: Promise<T>): Promise<T> {
  const then = promise.then.bind(promise);
  void then(undefined, () => {});
  return Object.assign(promise, { then: (...callbacks: Parameters<typeof then>) => tended(then(...callbacks)) });
}

function* rowsOf<T>(rows: Record<string, unknown>[], rowStart: number, tally: RowTally<T>): Generator<T> {
  for (const [place, row] of rows.entries()) yield* tally.take(rowStart + place + 1, () => plain(row));
}

/** Bigints as numbers if that is exact, all the way down. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }
  if (Array.isArray(value)) return value.map(plain);
  if (ArrayBuffer.isView(value)) {
    return value instanceof BigInt64Array || value instanceof BigUint64Array ? Array.from(value, plain) : value;
  }
  if (typeof value === 'object' && value !== null && !(value instanceof Date)) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
  }
  return value;
}

type Unpack = (input: Uint8Array, options: zlib.ZlibOptions) => Buffer;
const zstd = (zlib as { zstdDecompressSync?: Unpack }).zstdDecompressSync;
/** A page states its unpacked size; unpacking stops there, before a larger one fills the memory. */
const atMost = (length: number): zlib.ZlibOptions => ({ maxOutputLength: Math.max(1, length) });

const compressors: Compressors = {
  GZIP: (input, length) => zlib.gunzipSync(input, atMost(length)),
  BROTLI: (input, length) => zlib.brotliDecompressSync(input, atMost(length)),
  ZSTD: (input, length) => {
    if (zstd === undefined) throw new Error('this Node cannot read zstd; 22.15 or newer can');
    return zstd(input, atMost(length));
  },
};

function fail(path: string, cause: unknown): never {
  // The reader trusts its input, so its errors about a damaged file do not help the user.
  if (cause instanceof TypeError || cause instanceof RangeError)
    throw new SourceError(path, 'is damaged, or not a Parquet file', { cause });
  throw new SourceError(path, messageOf(cause), { cause });
}
