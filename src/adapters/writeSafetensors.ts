import { open } from 'node:fs/promises';
import type { SafetensorsFile, TensorPlace } from './safetensors.js';

/** A tensor to write, and where its bytes come from. They are asked for in order, when their place is reached. */
export interface TensorToWrite {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly byteLength: number;
  readonly bytes: () => AsyncIterable<Uint8Array>;
}

const ALIGNMENT = 8;
const CHUNK_BYTES = 4 * 1024 * 1024;

/** Writes a safetensors file, one piece of one tensor at a time. Gives its size in bytes. */
export async function writeSafetensors(
  path: string,
  tensors: readonly TensorToWrite[],
  metadata: Readonly<Record<string, string>> | undefined,
): Promise<number> {
  const header: Record<string, unknown> = metadata === undefined ? {} : { __metadata__: metadata };
  let offset = 0;
  for (const { name, dtype, shape, byteLength } of tensors) {
    header[name] = { dtype, shape, data_offsets: [offset, offset + byteLength] };
    offset += byteLength;
  }
  const json = Buffer.from(JSON.stringify(header));
  const padded = Math.ceil(json.length / ALIGNMENT) * ALIGNMENT;
  const start = Buffer.alloc(8 + padded, 0x20);
  start.writeBigUInt64LE(BigInt(padded), 0);
  json.copy(start, 8);
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
  return start.length + offset;
}

/** The bytes of a tensor, or of a part of it, as they are in its file. */
export async function* copyRange(
  { read }: SafetensorsFile,
  { start, end }: Pick<TensorPlace, 'start' | 'end'>,
): AsyncGenerator<Uint8Array> {
  for (let at = start; at < end; at += CHUNK_BYTES) yield await read(at, Math.min(CHUNK_BYTES, end - at));
}
