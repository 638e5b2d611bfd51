import { open, type FileHandle } from 'node:fs/promises';
import { ValidationError } from '../wire/tinkerError.js';

/** One tensor of a safetensors file. Its bytes are `start` up to `end` of the file. */
export interface TensorPlace {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly start: number;
  readonly end: number;
}

export interface SafetensorsHeader {
  readonly tensors: ReadonlyMap<string, TensorPlace>;
  readonly metadata: Readonly<Record<string, string>> | undefined;
}

/** Reads `length` bytes from `start` on, wherever the file is. */
export type ReadRange = (start: number, length: number) => Promise<Uint8Array>;

/** The format's own limit. */
const MAX_HEADER_BYTES = 100_000_000;
const LENGTH_BYTES = 8;

/** Bytes of one element, by the format's name of its type. */
export const ELEMENT_BYTES: Readonly<Record<string, number>> = {
  BOOL: 1,
  U8: 1,
  I8: 1,
  F8_E4M3: 1,
  F8_E5M2: 1,
  I16: 2,
  U16: 2,
  F16: 2,
  BF16: 2,
  I32: 4,
  U32: 4,
  F32: 4,
  I64: 8,
  U64: 8,
  F64: 8,
};

/**
 * Reads the header of a safetensors file: names, types, shapes and places, and none of the tensors.
 *
 * @throws ValidationError where the file is damaged; `name` says which one
 * @see https://github.com/huggingface/safetensors (format)
 */
export async function readHeader(read: ReadRange, name: string): Promise<SafetensorsHeader> {
  const damaged = (what: string) => new ValidationError(`${name} is not a valid safetensors file: ${what}`);
  const prefix = await read(0, LENGTH_BYTES);
  if (prefix.length < LENGTH_BYTES) throw damaged('it is shorter than its header');
  const length = Number(new DataView(prefix.buffer, prefix.byteOffset).getBigUint64(0, true));
  if (length > MAX_HEADER_BYTES) throw damaged('its header is too long');
  const bytes = await read(LENGTH_BYTES, length);
  if (bytes.length < length) throw damaged('it is shorter than its header');
  let json: Record<string, unknown>;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as Record<string, unknown>;
  } catch {
    throw damaged('its header is not JSON');
  }
  const tensors = new Map<string, TensorPlace>();
  let metadata: Record<string, string> | undefined;
  for (const [key, value] of Object.entries(json)) {
    if (key === '__metadata__') {
      metadata = value as Record<string, string>;
      continue;
    }
    const place = placeOf(value, LENGTH_BYTES + length);
    if (place === undefined) throw damaged(`${JSON.stringify(key)} does not fit its place`);
    tensors.set(key, place);
  }
  return { tensors, metadata };
}

function placeOf(value: unknown, dataStart: number): TensorPlace | undefined {
  const { dtype, shape, data_offsets: offsets } = (value ?? {}) as Record<string, unknown>;
  const isCount = (one: unknown): one is number => Number.isSafeInteger(one) && (one as number) >= 0;
  if (typeof dtype !== 'string' || !Array.isArray(shape) || !shape.every(isCount)) return undefined;
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount)) return undefined;
  const [from, to] = offsets as [number, number];
  const width = ELEMENT_BYTES[dtype];
  // A type that is newer than this code is copied as it is.
  if (to < from || (width !== undefined && to - from !== sizeOf(shape) * width)) return undefined;
  return { dtype, shape, start: dataStart + from, end: dataStart + to };
}

const sizeOf = (shape: readonly number[]): number => shape.reduce((size, dimension) => size * dimension, 1);

/** A safetensors file that is open for reading ranges of it. */
export class SafetensorsFile {
  private constructor(
    readonly path: string,
    readonly header: SafetensorsHeader,
    readonly read: ReadRange,
    private readonly handle: FileHandle,
  ) {}

  static async open(path: string): Promise<SafetensorsFile> {
    const handle = await open(path);
    try {
      const read: ReadRange = async (start, length) => {
        const buffer = new Uint8Array(length);
        let have = 0;
        while (have < length) {
          const { bytesRead } = await handle.read(buffer, have, length - have, start + have);
          if (bytesRead === 0) break;
          have += bytesRead;
        }
        return buffer.subarray(0, have);
      };
      const header = await readHeader(read, path);
      const { size } = await handle.stat();
      for (const [name, { end }] of header.tensors)
        if (end > size) throw new ValidationError(`${path} is cut short: ${name} ends at byte ${end} of ${size}`);
      return new SafetensorsFile(path, header, read, handle);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.handle.close();
  }
}
