import type { PackedColumn } from './changes.js';

/** Above this, 32 bits do not hold every integer. */
const EXACT = 2 ** 24;

/** Numbers as text; undefined where there is none among them. Seven digits are kept, and integers as they are. */
export function packColumn(values: Float64Array): PackedColumn | undefined {
  let [some, large] = [false, false];
  for (const value of values) {
    some ||= Number.isFinite(value);
    large ||= Math.abs(value) > EXACT;
  }
  if (!some) return undefined;
  return large ? { f64: toBase64(values) } : { f32: toBase64(Float32Array.from(values)) };
}

/** The inverse of {@link packColumn}. */
export function unpackColumn(packed: PackedColumn): Float64Array | Float32Array {
  if ('f64' in packed) return new Float64Array(fromBase64(packed.f64));
  return new Float32Array(fromBase64(packed.f32));
}

function toBase64({ buffer, byteOffset, byteLength }: Float64Array | Float32Array): string {
  return btoa(String.fromCharCode(...new Uint8Array(buffer, byteOffset, byteLength)));
}

function fromBase64(text: string): ArrayBuffer {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let place = 0; place < bytes.length; place++) bytes[place] = characters.charCodeAt(place);
  return bytes.buffer;
}
