import { checkAtLeast } from '../../support/checks.js';

/** One curve: x ascending, y NaN if there is nothing. */
export interface Curve {
  /** Where each point is. */
  readonly x: Float64Array;
  /** Its values. */
  readonly y: Float64Array;
}

/** Curves over one x axis, as uPlot takes them. */
export interface Aligned {
  /** All positions, in order. */
  readonly x: number[];
  /** Per curve its value at each position; null if it has none. */
  readonly ys: (number | null)[][];
}

/**
 * Puts curves over one x axis between `from` and `to`, with at most about `points` places.
 *
 * Curves that fit are given as they are. Longer ones are cut into buckets, and of each the lowest and the highest value
 * is kept, in the order they came: a single spike in 100,000 steps stays in sight.
 */
export function align(curves: readonly Curve[], from: number, to: number, points: number): Aligned {
  checkAtLeast({ points }, 2);
  const parts = curves.map(({ x, y }) => {
    const start = lowerBound(x, from);
    // One more on each side, so that a line leaves the picture instead of ending in it.
    const last = lowerBound(x, to);
    const end = Math.min(x.length, last + (x[last] === to ? 2 : 1));
    return { x: x.subarray(Math.max(0, start - 1), end), y: y.subarray(Math.max(0, start - 1), end) };
  });
  return parts.every(({ x }) => x.length <= points) ? exactly(parts) : inBuckets(parts, points >> 1);
}

function exactly(curves: readonly Curve[]): Aligned {
  const x = [...new Set(curves.flatMap((curve) => Array.from(curve.x)))].sort((a, b) => a - b);
  const ys = curves.map((curve) => {
    let row = 0;
    return x.map((at) => {
      if (curve.x[row] !== at) return null;
      return orNull(curve.y[row++]!);
    });
  });
  return { x, ys };
}

function inBuckets(curves: readonly Curve[], buckets: number): Aligned {
  const low = Math.min(...curves.filter(({ x }) => x.length > 0).map(({ x }) => x[0]!));
  const high = Math.max(...curves.filter(({ x }) => x.length > 0).map(({ x }) => x[x.length - 1]!));
  const width = (high - low) / buckets || 1;
  const x: number[] = [];
  for (let bucket = 0; bucket < buckets; bucket++) x.push(low + (bucket + 0.25) * width, low + (bucket + 0.75) * width);
  const ys = curves.map((curve) => {
    const y = new Array<number | null>(buckets * 2).fill(null);
    let row = 0;
    for (let bucket = 0; bucket < buckets; bucket++) {
      const end = bucket === buckets - 1 ? Infinity : low + (bucket + 1) * width;
      let [least, most] = [-1, -1];
      for (; row < curve.x.length && curve.x[row]! < end; row++) {
        const value = curve.y[row]!;
        if (Number.isNaN(value)) continue;
        if (least < 0 || value < curve.y[least]!) least = row;
        if (most < 0 || value > curve.y[most]!) most = row;
      }
      if (least < 0) continue;
      y[bucket * 2] = curve.y[Math.min(least, most)]!;
      y[bucket * 2 + 1] = curve.y[Math.max(least, most)]!;
    }
    return y;
  });
  return { x, ys };
}

/** A curve that follows another more calmly: each value is `weight` of what was and the rest of what is. */
export function smooth(y: Float64Array, weight: number): Float64Array {
  if (weight <= 0) return y;
  const smoothed = new Float64Array(y.length);
  let [mean, mass] = [0, 0];
  for (let row = 0; row < y.length; row++) {
    const value = y[row]!;
    if (!Number.isNaN(value)) {
      mean = weight * mean + (1 - weight) * value;
      mass = weight * mass + (1 - weight);
    }
    // Without the division the first values would lean towards zero.
    smoothed[row] = Number.isNaN(value) ? NaN : mean / mass;
  }
  return smoothed;
}

const orNull = (value: number): number | null => (Number.isNaN(value) ? null : value);

/** The first place of an ascending list at or after a value; its length if there is none. */
export function lowerBound(x: Float64Array, at: number): number {
  let [low, high] = [0, x.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle]! < at) low = middle + 1;
    else high = middle;
  }
  return low;
}
