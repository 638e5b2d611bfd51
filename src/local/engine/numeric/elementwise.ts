/**
 * Parts of the transformer that are neither products nor exponentials, on one Float32Array addressed by offset. Sums are taken
 * in double precision and in a fixed order, so that a row's result never depends on the rows beside it.
 */
import { NORM_EPS, ROPE_BASE } from '../model/shapes.js';

/** out = x / rms(x) · gain, row by row; keeps 1/rms for the backward pass. */
export function rmsNorm(
  f: Float32Array,
  x: number,
  gain: number,
  out: number,
  inverse: number,
  rows: number,
  width: number,
): void {
  for (let row = 0; row < rows; row++) {
    const from = x + row * width;
    const to = out + row * width;
    let squares = 0;
    for (let i = 0; i < width; i++) {
      const value = f[from + i]!;
      squares += value * value;
    }
    f[inverse + row] = 1 / Math.sqrt(squares / width + NORM_EPS);
    const scale = f[inverse + row]!;
    for (let i = 0; i < width; i++) f[to + i] = f[from + i]! * scale * f[gain + i]!;
  }
}

/** Adds to dx what flows back through {@link rmsNorm}; `dGain` (or -1) gathers the gain's gradient. */
export function rmsNormBackward(
  f: Float32Array,
  x: number,
  gain: number,
  inverse: number,
  dOut: number,
  dx: number,
  rows: number,
  width: number,
  dGain: number,
): void {
  for (let row = 0; row < rows; row++) {
    const at = row * width;
    const scale = f[inverse + row]!;
    let dot = 0;
    for (let i = 0; i < width; i++) dot += f[dOut + at + i]! * f[gain + i]! * f[x + at + i]!;
    const pull = (dot * scale * scale) / width;
    for (let i = 0; i < width; i++) {
      const index = at + i;
      f[dx + index] = f[dx + index]! + scale * (f[dOut + index]! * f[gain + i]! - f[x + index]! * pull);
    }
    if (dGain >= 0) {
      for (let i = 0; i < width; i++) f[dGain + i] = f[dGain + i]! + f[dOut + at + i]! * f[x + at + i]! * scale;
    }
  }
}

/** Cosines and sines of the rotary position encoding, [context, headWidth / 2]. */
export interface RopeTable {
  readonly cos: Float32Array;
  readonly sin: Float32Array;
  readonly half: number;
}

export function ropeTable(context: number, headWidth: number): RopeTable {
  const half = headWidth / 2;
  const cos = new Float32Array(context * half);
  const sin = new Float32Array(context * half);
  for (let position = 0; position < context; position++) {
    for (let i = 0; i < half; i++) {
      const angle = position * Math.pow(ROPE_BASE, -i / half);
      cos[position * half + i] = Math.cos(angle);
      sin[position * half + i] = Math.sin(angle);
    }
  }
  return { cos, sin, half };
}

/** Rotates one row of heads to its position, or back with `direction` -1 (which is also its backward pass). */
export function rope(
  f: Float32Array,
  row: number,
  width: number,
  position: number,
  table: RopeTable,
  direction: 1 | -1,
): void {
  const { cos, sin, half } = table;
  const base = position * half;
  for (let head = row; head < row + width; head += 2 * half) {
    for (let i = 0; i < half; i++) {
      const c = cos[base + i]!;
      const s = direction * sin[base + i]!;
      const a = f[head + i]!;
      const b = f[head + half + i]!;
      f[head + i] = a * c - b * s;
      f[head + half + i] = b * c + a * s;
    }
  }
}

/** ds = p ∘ (dp − Σ p·dp) · scale, written over dp. */
export function softmaxRowBackward(
  f: Float32Array,
  p: number,
  dp: number,
  count: number,
  padded: number,
  scale: number,
): void {
  let dot = 0;
  for (let i = 0; i < count; i++) dot += f[p + i]! * f[dp + i]!;
  for (let i = 0; i < count; i++) f[dp + i] = f[p + i]! * (f[dp + i]! - dot) * scale;
  for (let i = count; i < padded; i++) f[dp + i] = 0;
}

/** out[column, row] = in[row, column] · scale; entries between `rows` and `outRow` become 0. */
export function transpose(
  f: Float32Array,
  from: number,
  rows: number,
  columns: number,
  fromRow: number,
  out: number,
  outRow: number,
  scale = 1,
): void {
  for (let column = 0; column < columns; column++) {
    const to = out + column * outRow;
    for (let row = 0; row < rows; row++) f[to + row] = f[from + row * fromRow + column]! * scale;
    for (let row = rows; row < outRow; row++) f[to + row] = 0;
  }
}
