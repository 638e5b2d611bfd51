import { TensorData, type TensorValues } from '../tensor.js';
import { readFields, readInt64s } from './fields.js';
import type { MessageWriter } from './messageWriter.js';

// The wire is little-endian, and so is every machine this library runs on (Node has no big-endian release but s390x).
if (new Uint8Array(Uint16Array.of(1).buffer)[0] !== 1) throw new Error('tinker-rx needs a little-endian machine');

/** A typed array, whatever it holds. */
export interface View {
  readonly buffer: ArrayBufferLike;
  readonly byteOffset: number;
  readonly byteLength: number;
}

/** The bytes under a typed array, without copying. */
export const bytesOf = (array: View): Uint8Array => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

/** Small enough to stay in the processor's cache. */
const WIDE = new BigInt64Array(2048);
const WIDE_BYTES = bytesOf(WIDE);
const WIDE_WORDS = new Int32Array(WIDE.buffer);

/**
 * Writes 32-bit integers, or safe integers held as doubles, as int64. They are widened a few thousand at a time on their way to
 * the message, whose fields lie at any offset: an array of the wide ones for each tensor took longer than everything else.
 */
export function writeInt64s(values: TensorValues, target: Uint8Array, at: number): void {
  const most = WIDE.length;
  for (let from = 0; from < values.length; from += most) {
    const count = Math.min(most, values.length - from);
    if (values instanceof Int32Array) widen(values, from, count);
    else split(values, from, count);
    target.set(count === most ? WIDE_BYTES : WIDE_BYTES.subarray(0, 8 * count), at + 8 * from);
  }
}

/** Compiled, a BigInt that only goes into its array is never made: this is one instruction a value, and two stores of 32 bits are slower. */
function widen(values: Int32Array, from: number, count: number): void {
  for (let index = 0; index < count; index++) WIDE[index] = BigInt(values[from + index]!);
}

function split(values: Float64Array | Float32Array, from: number, count: number): void {
  for (let index = 0; index < count; index++) {
    const value = values[from + index]!;
    WIDE_WORDS[2 * index] = value;
    WIDE_WORDS[2 * index + 1] = Math.floor(value / 2 ** 32);
  }
}

/** The same in new memory. */
export function int64Bytes(values: TensorValues): Uint8Array {
  const bytes = new Uint8Array(8 * values.length);
  writeInt64s(values, bytes, 0);
  return bytes;
}

/** Copies bytes to where a wider array may start, since a message's fields lie at any offset. */
function aligned(bytes: Uint8Array): ArrayBuffer {
  // Not `bytes.slice()`: of a Buffer that is a view of the same memory.
  return Uint8Array.prototype.slice.call(bytes).buffer;
}

export const toInt32 = (bytes: Uint8Array): Int32Array => new Int32Array(aligned(bytes));
export const toFloat32 = (bytes: Uint8Array): Float32Array => new Float32Array(aligned(bytes));

/** int64 bytes as an Int32Array where every value fits, else as doubles. @throws RangeError past 2⁵³. */
export function toInt64(bytes: Uint8Array): Int32Array | Float64Array {
  const words = toInt32(bytes);
  const length = words.length / 2;
  const small = new Int32Array(length);
  for (let index = 0; index < length; index++) {
    const low = words[2 * index]!;
    if (words[2 * index + 1] !== low >> 31) return toDoubles(words);
    small[index] = low;
  }
  return small;
}

function toDoubles(words: Int32Array): Float64Array {
  const doubles = new Float64Array(words.length / 2);
  for (let index = 0; index < doubles.length; index++) {
    const value = words[2 * index + 1]! * 2 ** 32 + (words[2 * index]! >>> 0);
    if (!Number.isSafeInteger(value)) throw new RangeError(`int64 value at ${index} is beyond 2^53`);
    doubles[index] = value;
  }
  return doubles;
}

/** bfloat16 is the upper half of a float32. */
function bfloat16ToFloat32(bytes: Uint8Array): Float32Array {
  const halves = new Uint16Array(aligned(bytes));
  const words = new Uint32Array(halves.length);
  for (let index = 0; index < halves.length; index++) words[index] = halves[index]! << 16;
  return new Float32Array(words.buffer);
}

export const DTYPE = { float32: 1, int64: 2, int32: 3, bfloat16: 4 } as const;
const ITEM_BYTES: Readonly<Record<number, number>> = { 1: 4, 2: 8, 3: 4, 4: 2 };

/** Bytes of one value of a wire dtype. @throws RangeError for an unknown dtype. */
export function itemBytes(dtype: number): number {
  const size = ITEM_BYTES[dtype];
  if (size === undefined) throw new RangeError(`unsupported tensor dtype ${dtype}`);
  return size;
}

/** Widened values: bf16 to float32, int32 to int64. */
export function decodeValues(bytes: Uint8Array, dtype: number): { dtype: 'int64' | 'float32'; data: TensorValues } {
  itemBytes(dtype);
  switch (dtype) {
    case DTYPE.int64:
      return { dtype: 'int64', data: toInt64(bytes) };
    case DTYPE.int32:
      return { dtype: 'int64', data: toInt32(bytes) };
    case DTYPE.bfloat16:
      return { dtype: 'float32', data: bfloat16ToFloat32(bytes) };
    default:
      return { dtype: 'float32', data: toFloat32(bytes) };
  }
}

/** The values of a float32 tensor, which a caller may have made of another array. */
export const toFloats = (data: TensorValues): Float32Array =>
  data instanceof Float32Array ? data : Float32Array.from(data);

/** Tensor { oneof { bytes dense=1; SparseCsr sparse_csr=2 } DType dtype=3; repeated int64 shape=4 } */
export function writeTensor(writer: MessageWriter, tensor: TensorData): void {
  const { dtype, data, sparse } = tensor;
  if (sparse !== undefined)
    writer.message(2, (csr) => {
      if (dtype === 'int64') csr.int64s(1, data);
      else csr.bytes(1, toFloats(data));
      csr.int64s(2, sparse.crowIndices).int64s(3, sparse.colIndices);
    });
  else if (dtype === 'int64') writer.presentInt64s(1, data);
  else writer.presentBytes(1, toFloats(data));
  writer.int(3, DTYPE[dtype]).packedInts(4, tensor.shape);
}

const NONE: Uint8Array = new Uint8Array();

export function readTensor(bytes: Uint8Array): TensorData {
  let dense = NONE;
  let sparse: { values: Uint8Array; crow: Uint8Array; col: Uint8Array } | undefined;
  let dtype = 0;
  const shape: number[] = [];
  readFields(bytes, (field, reader, wireType) => {
    if (field === 1) dense = reader.bytes();
    else if (field === 2) sparse = readSparse(reader.bytes());
    else if (field === 3) dtype = reader.int32();
    else if (field === 4) readInt64s(reader, wireType, shape);
    else return false;
    return true;
  });
  if (sparse === undefined) {
    const values = decodeValues(dense, dtype);
    return new TensorData({ ...values, shape: shape.length > 0 ? shape : [values.data.length] });
  }
  return new TensorData({
    ...decodeValues(sparse.values, dtype),
    shape,
    sparse: { crowIndices: Int32Array.from(toInt64(sparse.crow)), colIndices: Int32Array.from(toInt64(sparse.col)) },
  });
}

function readSparse(bytes: Uint8Array): { values: Uint8Array; crow: Uint8Array; col: Uint8Array } {
  const sparse = { values: NONE, crow: NONE, col: NONE };
  readFields(bytes, (field, reader) => {
    if (field === 1) sparse.values = reader.bytes();
    else if (field === 2) sparse.crow = reader.bytes();
    else if (field === 3) sparse.col = reader.bytes();
    else return false;
    return true;
  });
  return sparse;
}
