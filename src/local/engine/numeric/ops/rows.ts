/**
 * Parts of the transformer that work row by row. Sums are taken in double precision and in a fixed order, so that a row's result
 * never depends on the rows beside it, nor on the thread that computes it.
 */
import type { Lane } from '../lane.js';

/** out = x / rms(x) · gain, row by row; keeps 1/rms for the backward pass. */
export function norm(
  { floats: f }: Lane,
  first: number,
  end: number,
  _scratch: number,
  width: number,
  eps: number,
  x: number,
  gain: number,
  out: number,
  inverse: number,
): void {
  for (let row = first; row < end; row++) {
    const from = x + row * width;
    const to = out + row * width;
    let squares = 0;
    for (let i = 0; i < width; i++) {
      const value = f[from + i]!;
      squares += value * value;
    }
    f[inverse + row] = 1 / Math.sqrt(squares / width + eps);
    const scale = f[inverse + row]!;
    for (let i = 0; i < width; i++) f[to + i] = f[from + i]! * scale * f[gain + i]!;
  }
}

/** Adds to dx what flows back through {@link norm}; `dGain` (or -1) gathers the gain's gradient, in one share. */
export function normBackward(
  { floats: f }: Lane,
  first: number,
  end: number,
  _scratch: number,
  width: number,
  x: number,
  gain: number,
  inverse: number,
  dOut: number,
  dx: number,
  dGain: number,
): void {
  for (let row = first; row < end; row++) {
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

/**
 * Rotates rows of heads to their positions, or back with `direction` -1 (which is also its backward pass). `table` has, for each position,
 * the cosines of half a head and then the sines.
 */
export function rope(
  { floats: f }: Lane,
  first: number,
  end: number,
  _scratch: number,
  x: number,
  width: number,
  headWidth: number,
  positions: number,
  table: number,
  direction: number,
): void {
  const half = headWidth / 2;
  for (let row = first; row < end; row++) {
    const base = table + f[positions + row]! * headWidth;
    for (let head = x + row * width; head < x + (row + 1) * width; head += headWidth) {
      for (let i = 0; i < half; i++) {
        const c = f[base + i]!;
        const s = direction * f[base + half + i]!;
        const a = f[head + i]!;
        const b = f[head + half + i]!;
        f[head + i] = a * c - b * s;
        f[head + half + i] = b * c + a * s;
      }
    }
  }
}

/** out = silu(gate) · up. */
export function swiglu(
  { kernels }: Lane,
  first: number,
  end: number,
  _scratch: number,
  width: number,
  gate: number,
  up: number,
  out: number,
): void {
  const at = first * width;
  kernels.swiglu(gate + at, up + at, out + at, (end - first) * width);
}

/** Replaces gate and up by their gradients. */
export function swigluBackward(
  { kernels }: Lane,
  first: number,
  end: number,
  _scratch: number,
  width: number,
  gate: number,
  up: number,
  dOut: number,
): void {
  const at = first * width;
  kernels.swigluBackward(gate + at, up + at, dOut + at, (end - first) * width);
}

/** The largest value of each row, and Σ exp(x − it), as pairs in `out`. */
export function sumExponentials(
  { kernels }: Lane,
  first: number,
  end: number,
  _scratch: number,
  width: number,
  x: number,
  out: number,
): void {
  for (let row = first; row < end; row++) kernels.sumExponentials(x + row * width, width, out + 2 * row);
}

/** Each row becomes factor · exp(row − shift), or 0 where the factor is 0. Shift and factor of a row are a pair in `pairs`. */
export function scaledExponentials(
  { kernels, floats: f }: Lane,
  first: number,
  end: number,
  _scratch: number,
  width: number,
  x: number,
  pairs: number,
): void {
  for (let row = first; row < end; row++) {
    const at = x + row * width;
    const factor = f[pairs + 2 * row + 1]!;
    if (factor === 0) f.fill(0, at, at + width);
    else kernels.scaledExponential(at, width, f[pairs + 2 * row]!, factor);
  }
}
