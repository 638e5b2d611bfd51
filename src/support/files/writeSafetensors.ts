import { open } from 'node:fs/promises';
import { encodeHeader, type SafetensorsFile, type TensorPlace } from './safetensors.js';

/** A tensor to write, and where its bytes come from. They are asked for in order, when their place is reached. */
export interface TensorToWrite {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly byteLength: number;
  readonly bytes: () => AsyncIterable<Uint8Array>;
}

const CHUNK_BYTES = 4 * 1024 * 1024;

/** Writes a safetensors file, one piece of one tensor at a time. Gives its size in bytes. */
export async function writeSafetensors(
  path: string,
  tensors: readonly TensorToWrite[],
  metadata: Readonly<Record<string, string>> | undefined,
): Promise<number> {
  const start = encodeHeader(tensors, metadata);
  const file = await open(path, 'w');
  try {
    await file.writeFile(start);
    for (const { name, byteLength, bytes } of tensors) {
      let written = 0;
      for await (const piece of bytes()) {
        await file.writeFile(piece);
        written += piece.length;
      }
      if (written !== byteLength) throw new Error(`${name}: wrote ${written} of ${byteLength} bytes`);
    }
  } finally {
    await file.close();
  }
  return start.length + tensors.reduce((size, { byteLength }) => size + byteLength, 0);
}

/** The bytes of a tensor, or of a part of it, as they are in its file. */
export async function* copyRange(
  { read }: SafetensorsFile,
  { start, end }: Pick<TensorPlace, 'start' | 'end'>,
): AsyncGenerator<Uint8Array> {
  for (let at = start; at < end; at += CHUNK_BYTES) yield await read(at, Math.min(CHUNK_BYTES, end - at));
}
