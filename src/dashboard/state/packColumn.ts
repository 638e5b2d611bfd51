import type { PackedColumn } from './changes.js';

/** Beyond this, 32 bits of a fraction keep fewer digits than seven, or do not hold every integer. */
const [SMALLEST, EXACT] = [1e-37, 2 ** 24];
const UNSIGNED = [
  ['u8', Uint8Array],
  ['u16', Uint16Array],
  ['u32', Uint32Array],
] as const;
/** `String.fromCharCode` takes its characters as arguments, and there is a limit to those. */
const CHARACTERS_AT_ONCE = 8192;

/**
 * Numbers as text, little end first; undefined where there is none among them: NaN is none. Whole numbers are kept as
 * they are and take a byte or two where they lie close together; of others seven digits are kept. With `per`, so many
 * parts of a unit are what is kept: 1000 keeps three decimals.
 */
export function packColumn(values: Float64Array, per = 1): PackedColumn | undefined {
  const { low, high, whole, wide, gaps } = survey(values, per);
  if (low > high) return undefined;
  const scale = per === 1 ? {} : { per };
  if (low === high && !gaps) return { as: 'all', from: low, ...scale };
  for (const [as, Kind] of UNSIGNED) {
    if (!whole || high - low >= 2 ** (8 * Kind.BYTES_PER_ELEMENT) - 1) continue;
    // Zero is no number, so that a gap has a place too.
    const data = new Kind(values.length);
    for (let row = 0; row < values.length; row++) {
      const value = values[row]!;
      if (isFinite(value)) data[row] = Math.round(value * per) - low + 1;
    }
    return { as, data: toBase64(data), from: low, ...scale };
  }
  return wide
    ? { as: 'f64', data: toBase64(values.slice()) }
    : { as: 'f32', data: toBase64(Float32Array.from(values)) };
}

/** What numbers there are among the values, in parts of a unit, and what they need. */
function survey(values: Float64Array, per: number) {
  let low = Infinity;
  let high = -Infinity;
  let whole = true;
  let wide = false;
  let gaps = false;
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!;
    if (!isFinite(value)) {
      gaps = true;
      continue;
    }
    const scaled = per === 1 ? value : Math.round(value * per);
    if (scaled < low) low = scaled;
    if (scaled > high) high = scaled;
    if (whole && !Number.isSafeInteger(scaled)) whole = false;
    const size = Math.abs(value);
    if (size > EXACT || (size < SMALLEST && size > 0)) wide = true;
  }
  return { low, high, whole, wide, gaps };
}

/** The inverse of {@link packColumn}, for a column of this length; NaN where there is no number. */
export function unpackColumn({ as, data = '', from = 0, per = 1 }: PackedColumn, length: number): Float64Array {
  const column = new Float64Array(length);
  if (as === 'all') return column.fill(from / per);
  const buffer = fromBase64(data);
  if (as === 'f64') column.set(new Float64Array(buffer).subarray(0, length));
  else if (as === 'f32') column.set(new Float32Array(buffer).subarray(0, length));
  else {
    const places =
      as === 'u8' ? new Uint8Array(buffer) : as === 'u16' ? new Uint16Array(buffer) : new Uint32Array(buffer);
    for (let row = 0; row < length; row++) {
      const place = places[row] ?? 0;
      column[row] = place === 0 ? NaN : (place - 1 + from) / per;
    }
  }
  return column;
}

/** Where this runs in Node, which is where packing is done: twenty times faster than what browsers have too. */
const { Buffer } = globalThis as {
  readonly Buffer?: { from(bytes: ArrayBufferLike): { toString(as: 'base64'): string } };
};

function toBase64({ buffer }: ArrayBufferView): string {
  if (Buffer !== undefined) return Buffer.from(buffer).toString('base64');
  const bytes = new Uint8Array(buffer);
  let characters = '';
  for (let from = 0; from < bytes.length; from += CHARACTERS_AT_ONCE) {
    characters += String.fromCharCode(...bytes.subarray(from, from + CHARACTERS_AT_ONCE));
  }
  return btoa(characters);
}

/** Newer browsers can do it themselves. */
const { fromBase64: nativeFromBase64 } = Uint8Array as {
  readonly fromBase64?: (text: string) => Uint8Array<ArrayBuffer>;
};

function fromBase64(text: string): ArrayBuffer {
  if (nativeFromBase64 !== undefined) return nativeFromBase64.call(Uint8Array, text).buffer;
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let place = 0; place < bytes.length; place++) bytes[place] = characters.charCodeAt(place);
  return bytes.buffer;
}
