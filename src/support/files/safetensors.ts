import { isRecord } from '../isRecord.js';
import { openRanges, type ReadRange } from './readRange.js';

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

/** The format's own limit. */
const MAX_HEADER_BYTES = 100_000_000;
const LENGTH_BYTES = 8;
const ALIGNMENT = 8;

/** Bytes of one element, by the format's name of its type. */
// prettier-ignore
export const ELEMENT_BYTES: Readonly<Record<string, number>> = {
  BOOL: 1, U8: 1, I8: 1, F8_E4M3: 1, F8_E5M2: 1,
  I16: 2, U16: 2, F16: 2, BF16: 2,
  I32: 4, U32: 4, F32: 4,
  I64: 8, U64: 8, F64: 8,
};

/**
 * Reads the header of a safetensors file: names, types, shapes and places, and none of the tensors.
 *
 * @throws DamagedFileError; `name` says which file it is
 * @see https://github.com/huggingface/safetensors (format)
 */
export async function readHeader(read: ReadRange, name: string): Promise<SafetensorsHeader> {
  const length = headerLength(await read(0, LENGTH_BYTES), name);
  return parseHeader(await read(LENGTH_BYTES, length), length, name);
}

/** The header of a safetensors file in memory. Also checks that every tensor lies within the file and that none overlap. */
export function decodeHeader(file: Uint8Array, name: string): SafetensorsHeader {
  const length = headerLength(file, name);
  const start = LENGTH_BYTES + length;
  const header = parseHeader(file.subarray(LENGTH_BYTES, start), length, name);
  let claimed = 0;
  for (const [key, place] of header.tensors) {
    if (place.end > file.length) throw damaged(name, `${JSON.stringify(key)} does not fit its place`);
    // A short header can claim the same bytes for thousands of tensors.
    claimed += place.end - place.start;
    if (claimed > file.length - start) throw damaged(name, `${JSON.stringify(key)} overlaps another tensor`);
  }
  return header;
}

/** The bytes before the tensors: the header's length, then the header, padded so that the tensors are aligned. */
export function encodeHeader(
  tensors: Iterable<{
    readonly name: string;
    readonly dtype: string;
    readonly shape: readonly number[];
    readonly byteLength: number;
  }>,
  metadata: Readonly<Record<string, string>> | undefined,
): Uint8Array {
  const header: Record<string, unknown> = metadata === undefined ? {} : { __metadata__: metadata };
  let offset = 0;
  for (const { name, dtype, shape, byteLength } of tensors) {
    header[name] = { dtype, shape, data_offsets: [offset, offset + byteLength] };
    offset += byteLength;
  }
  const json = new TextEncoder().encode(JSON.stringify(header));
  const padded = Math.ceil(json.length / ALIGNMENT) * ALIGNMENT;
  const bytes = new Uint8Array(LENGTH_BYTES + padded).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(padded), true);
  bytes.set(json, LENGTH_BYTES);
  return bytes;
}

/** A file that is not what its header says. The message names it. */
export class DamagedFileError extends Error {}

const damaged = (name: string, what: string): DamagedFileError =>
  new DamagedFileError(`${name} is not a valid safetensors file: ${what}`);

function headerLength(start: Uint8Array, name: string): number {
  if (start.length < LENGTH_BYTES) throw damaged(name, 'it is shorter than its header');
  const length = Number(new DataView(start.buffer, start.byteOffset).getBigUint64(0, true));
  if (length > MAX_HEADER_BYTES) throw damaged(name, 'its header is too long');
  return length;
}

function parseHeader(bytes: Uint8Array, length: number, name: string): SafetensorsHeader {
  if (bytes.length < length) throw damaged(name, 'it is shorter than its header');
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw damaged(name, 'its header is not JSON');
  }
  if (!isRecord(json)) throw damaged(name, 'its header is not an object');
  const { __metadata__: metadata, ...entries } = json;
  if (metadata !== undefined && !isTexts(metadata)) throw damaged(name, 'its metadata are not texts');
  const tensors = new Map<string, TensorPlace>();
  for (const [key, value] of Object.entries(entries)) {
    const place = placeOf(value, LENGTH_BYTES + length);
    if (place === undefined) throw damaged(name, `${JSON.stringify(key)} does not fit its place`);
    tensors.set(key, place);
  }
  return { tensors, metadata };
}

const isTexts = (value: unknown): value is Readonly<Record<string, string>> =>
  isRecord(value) && Object.values(value).every((text) => typeof text === 'string');

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function placeOf(value: unknown, dataStart: number): TensorPlace | undefined {
  const { dtype, shape, data_offsets: offsets } = isRecord(value) ? value : {};
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
    readonly close: () => Promise<void>,
  ) {}

  static async open(path: string): Promise<SafetensorsFile> {
    const { size, read, close } = await openRanges(path);
    try {
      const header = await readHeader(read, path);
      for (const [name, { end }] of header.tensors)
        if (end > size) throw new DamagedFileError(`${path} is cut short: ${name} ends at byte ${end} of ${size}`);
      return new SafetensorsFile(path, header, read, close);
    } catch (error) {
      await close();
      throw error;
    }
  }
}
