import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { pipeline, type Readable, type Transform } from 'node:stream';
import { fileURLToPath } from 'node:url';
import * as zlib from 'node:zlib';
import { messageOf } from '../../support/messageOf.js';
import { SourceError } from '../SourceError.js';

const CHUNK_BYTES = 256 * 1024;

export function filePath(path: string | URL): string {
  return typeof path === 'string' ? path : fileURLToPath(path);
}

/** The file's name without the ending of its compression: what its format is told by. */
export function withoutCompression(file: string): string {
  return file.replace(/\.(gz|gzip|zst)$/i, '');
}

function decompressor(file: string): Transform | undefined {
  if (/\.(gz|gzip)$/i.test(file)) return zlib.createGunzip();
  if (/\.zst$/i.test(file)) {
    const create = (zlib as { createZstdDecompress?: () => Transform }).createZstdDecompress;
    if (create === undefined) throw new SourceError(file, 'this Node cannot read zstd; 22.15 or newer can');
    return create();
  }
  return undefined;
}

/** How far a file has been read. */
export interface ByteCount {
  bytes: number;
  totalBytes: number | undefined;
}

/** A file's bytes in order, decompressed by its ending; keeps the count. */
export async function* readBytes(file: string, signal: AbortSignal, count: ByteCount): AsyncGenerator<Buffer> {
  let raw: ReturnType<typeof createReadStream> | undefined;
  let stream: Readable | undefined;
  try {
    count.totalBytes = (await stat(file)).size;
    // A stream made with a signal that is aborted already would leave its file open.
    if (signal.aborted) return;
    const transform = decompressor(file);
    raw = createReadStream(file, { highWaterMark: CHUNK_BYTES, signal });
    stream = transform === undefined ? raw : pipeline(raw, transform, () => {});
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      count.bytes = raw.bytesRead;
      yield chunk;
    }
    count.bytes = raw.bytesRead;
  } catch (cause) {
    if (cause instanceof SourceError) throw cause;
    throw new SourceError(file, messageOf(cause), { cause });
  } finally {
    stream?.destroy();
    raw?.destroy();
  }
}
