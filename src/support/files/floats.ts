/** The types that are read and written as numbers here. */
export type FloatType = 'F32' | 'F16' | 'BF16';

export const isFloatType = (dtype: string): dtype is FloatType =>
  dtype === 'F32' || dtype === 'F16' || dtype === 'BF16';

// Every machine that this package runs on is little-endian, as these files are (wire/proto/bytes.ts).
const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

const word = new DataView(new ArrayBuffer(4));

/** Float32 values of little-endian bytes. @throws Error for a type that is not one of the three */
export function decodeFloats(bytes: Uint8Array, dtype: string, name: string): Float32Array {
  if (!isFloatType(dtype)) throw new Error(`${name} is stored as ${dtype}, not as F32, F16 or BF16`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const values = new Float32Array(bytes.byteLength / (dtype === 'F32' ? 4 : 2));
  if (dtype === 'F32') bytesOf(values).set(bytes);
  else if (dtype === 'BF16') {
    const bits = new Uint32Array(values.buffer);
    for (let i = 0; i < bits.length; i++) bits[i] = view.getUint16(2 * i, true) << 16;
  } else for (let i = 0; i < values.length; i++) values[i] = fromHalf(view.getUint16(2 * i, true));
  return values;
}

/** Writes float32 values over bytes of a type, rounding to the nearest, ties to even. */
export function encodeFloats(values: Float32Array, dtype: FloatType, bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (dtype === 'F32') bytes.set(bytesOf(values));
  else {
    const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
    const encode = dtype === 'BF16' ? toBrain : toHalf;
    for (let i = 0; i < bits.length; i++) view.setUint16(2 * i, encode(bits[i]!), true);
  }
}

function toBrain(bits: number): number {
  const isNaN = (bits & 0x7fffffff) > 0x7f800000;
  return isNaN ? (bits >>> 16) | 0x40 : ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 0) >>> 16;
}

/** The value of a float16, by its bits. */
export function fromHalf(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}

function toHalf(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  // From here on the nearest half is infinity.
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude >= 0x38800000) {
    const rebased = magnitude - 0x38000000;
    return sign | ((rebased + 0xfff + ((rebased >>> 13) & 1)) >>> 13);
  }
  // Subnormal: a multiple of 2^-24.
  word.setUint32(0, magnitude);
  const scaled = word.getFloat32(0) * 2 ** 24;
  const below = Math.floor(scaled);
  const rest = scaled - below;
  return sign | (rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below);
}
