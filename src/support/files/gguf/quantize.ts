import { encodeFloats } from '../floats.js';
import type { TensorTypeName } from './tensorTypes.js';

const BLOCK = 32;
const { fround } = Math;

/** Bytes of values in a type that is written here. Q8_0 equals that of Python's `gguf` byte for byte. */
export function encodeTensor(values: Float32Array, type: WrittenType): Uint8Array {
  if (type === 'Q8_0') return toQ8(values);
  const bytes = new Uint8Array(values.length * (type === 'F32' ? 4 : 2));
  encodeFloats(values, type, bytes);
  return bytes;
}

/** A type that is written here. */
export type WrittenType = Extract<TensorTypeName, 'F32' | 'F16' | 'Q8_0'>;

/** Each 32 values share a scale, a float16: the greatest of them becomes 127. */
function toQ8(values: Float32Array): Uint8Array {
  const bytes = new Uint8Array((values.length / BLOCK) * (2 + BLOCK));
  const scale = new Float32Array(1);
  for (let from = 0, at = 0; from < values.length; from += BLOCK, at += 2 + BLOCK) {
    let most = 0;
    for (let i = from; i < from + BLOCK; i++) most = Math.max(most, Math.abs(values[i]!));
    scale[0] = most / 127;
    const inverse = scale[0] === 0 ? 0 : fround(1 / scale[0]);
    encodeFloats(scale, 'F16', bytes.subarray(at, at + 2));
    for (let i = 0; i < BLOCK; i++) bytes[at + 2 + i] = awayFromZero(fround(values[from + i]! * inverse));
  }
  return bytes;
}

/** Rounds halves away from zero; `Math.round` rounds them up. */
const awayFromZero = (value: number): number => Math.sign(value) * Math.floor(Math.abs(value) + 0.5);
