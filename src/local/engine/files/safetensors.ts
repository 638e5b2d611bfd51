import type { NamedTensor } from '../types.js';

/** The two storage types written and read here. */
export type SafetensorsDtype = 'F32' | 'BF16';

export interface SafetensorsFile {
  readonly tensors: Readonly<Record<string, NamedTensor>>;
  /** The file's `__metadata__`: text by name. */
  readonly metadata: Readonly<Record<string, string>>;
}

const ALIGNMENT = 8;

/**
 * Encodes tensors as a safetensors file, in the order given. BF16 rounds to nearest even.
 * @see https://github.com/huggingface/safetensors (format)
 */
export function encodeSafetensors(
  tensors: Readonly<Record<string, NamedTensor>>,
  {
    metadata,
    dtype = 'F32',
  }: { readonly metadata?: Readonly<Record<string, string>>; readonly dtype?: SafetensorsDtype } = {},
): Uint8Array<ArrayBuffer> {
  const width = dtype === 'F32' ? 4 : 2;
  const header: Record<string, unknown> = metadata === undefined ? {} : { __metadata__: metadata };
  let offset = 0;
  for (const [name, { shape, data }] of Object.entries(tensors)) {
    const end = offset + data.length * width;
    header[name] = { dtype, shape, data_offsets: [offset, end] };
    offset = end;
  }
  const json = new TextEncoder().encode(JSON.stringify(header));
  const headerSize = Math.ceil(json.length / ALIGNMENT) * ALIGNMENT;
  const file = new Uint8Array(8 + headerSize + offset);
  const view = new DataView(file.buffer);
  view.setBigUint64(0, BigInt(headerSize), true);
  file.fill(0x20, 8, 8 + headerSize);
  file.set(json, 8);
  let at = 8 + headerSize;
  for (const { data } of Object.values(tensors)) {
    if (dtype === 'F32' && LITTLE_ENDIAN) file.set(bytesOf(data), at);
    else if (dtype === 'F32') data.forEach((value, i) => view.setFloat32(at + 4 * i, value, true));
    else data.forEach((value, i) => view.setUint16(at + 2 * i, toBfloat16(value), true));
    at += width * data.length;
  }
  return file;
}

/** Decodes a safetensors file to float32 tensors. Throws where it is cut short, overlaps, or holds another dtype. */
export function decodeSafetensors(file: Uint8Array): SafetensorsFile {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (file.length < 8) throw new Error('safetensors: file is shorter than its header');
  const headerSize = Number(view.getBigUint64(0, true));
  if (headerSize > file.length - 8) throw new Error('safetensors: file is shorter than its header');
  const header = parseHeader(file.subarray(8, 8 + headerSize));
  const start = 8 + headerSize;
  const tensors: Record<string, NamedTensor> = {};
  let metadata: Record<string, string> = {};
  let claimed = 0;
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__') {
      metadata = textsOf(entry);
      continue;
    }
    const { dtype, shape, from, to } = placeOf(name, entry);
    if (dtype !== 'F32' && dtype !== 'BF16') throw new Error(`safetensors: ${name} is not F32 or BF16`);
    const size = shape.reduce((a, b) => a * b, 1);
    const width = dtype === 'F32' ? 4 : 2;
    if (to - from !== size * width || from < 0 || start + to > file.length) {
      throw new Error(`safetensors: ${name} does not fit its place`);
    }
    // A short header can claim the same bytes for thousands of tensors.
    claimed += to - from;
    if (claimed > file.length - start) throw new Error(`safetensors: ${name} overlaps another tensor`);
    const data = new Float32Array(size);
    const at = start + from;
    if (dtype === 'F32' && LITTLE_ENDIAN) bytesOf(data).set(file.subarray(at, start + to));
    else if (dtype === 'F32') for (let i = 0; i < size; i++) data[i] = view.getFloat32(at + 4 * i, true);
    else for (let i = 0; i < size; i++) data[i] = fromBfloat16(view.getUint16(at + 2 * i, true));
    tensors[name] = { shape, data };
  }
  return { tensors, metadata };
}

function parseHeader(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new Error('safetensors: header is not JSON', { cause });
  }
  if (!isRecord(header)) throw new Error('safetensors: header is not an object');
  return header;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function textsOf(entry: unknown): Record<string, string> {
  if (!isRecord(entry) || !Object.values(entry).every((value) => typeof value === 'string'))
    throw new Error('safetensors: metadata are not texts');
  return entry as Record<string, string>;
}

function placeOf(name: string, entry: unknown): { dtype: unknown; shape: number[]; from: number; to: number } {
  const { dtype, shape, data_offsets: offsets } = isRecord(entry) ? entry : {};
  if (!Array.isArray(shape) || !shape.every(isCount)) throw new Error(`safetensors: ${name} has no shape`);
  const [from, to] = Array.isArray(offsets) ? (offsets as readonly unknown[]) : [];
  if (!isCount(from) || !isCount(to)) throw new Error(`safetensors: ${name} has no place`);
  return { dtype, shape, from, to };
}

/** The order of the file's bytes; nearly every machine has it too, and floats are then copied as they lie. */
const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

const word = new DataView(new ArrayBuffer(4));

function toBfloat16(value: number): number {
  word.setFloat32(0, value);
  const bits = word.getUint32(0);
  if (Number.isNaN(value)) return (bits >>> 16) | 0x40;
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

function fromBfloat16(bits: number): number {
  word.setUint32(0, bits << 16);
  return word.getFloat32(0);
}
