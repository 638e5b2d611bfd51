import type { Random } from '../numeric/random.js';

export interface Choice {
  /** 0 takes the most likely token. */
  readonly temperature: number;
  /** ≤ 0: no limit. */
  readonly topK: number;
  readonly topP: number;
}

/** The most likely token; the lowest id where several are. */
function mostLikely(logits: Float32Array): number {
  let best = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i]! > logits[best]!) best = i;
  return best;
}

/** The ids of the k largest values, largest first, ties by id. */
export function largest(values: ArrayLike<number>, k: number): Int32Array {
  const ids = new Int32Array(Math.min(k, values.length));
  let count = 0;
  takeLargest(values, (id) => {
    if (count < ids.length) ids[count++] = id;
    return count < ids.length;
  });
  return ids;
}

/** Ids as a binary heap; used again for every row, grown as needed. */
let order = new Int32Array(0);

/**
 * Gives the ids by value, largest first, ties by id, for as long as `take` asks for more. What is not asked for is not sorted: a row of
 * logits is mostly tokens that nobody draws.
 */
function takeLargest(values: ArrayLike<number>, take: (id: number) => boolean): void {
  const size = values.length;
  if (order.length < size) order = new Int32Array(size);
  const heap = order;
  for (let id = 0; id < size; id++) heap[id] = id;
  for (let place = (size >> 1) - 1; place >= 0; place--) sink(values, heap, place, size);
  for (let left = size; left > 0;) {
    const first = heap[0]!;
    if (!take(first)) return;
    heap[0] = heap[--left]!;
    sink(values, heap, 0, left);
  }
}

/** Moves the id at a place down to where no larger value is below it. */
function sink(values: ArrayLike<number>, heap: Int32Array, place: number, size: number): void {
  const id = heap[place]!;
  const value = values[id]!;
  for (;;) {
    let child = 2 * place + 1;
    if (child >= size) break;
    let below = heap[child]!;
    if (child + 1 < size) {
      const other = heap[child + 1]!;
      if (values[other]! > values[below]! || (values[other] === values[below] && other < below)) {
        below = other;
        child++;
      }
    }
    const isAbove = values[below]! > value || (values[below] === value && below < id);
    if (!isAbove) break;
    heap[place] = below;
    place = child;
  }
  heap[place] = id;
}

/**
 * Draws a token: softmax at the temperature, cut to the `topK` most likely, then to the smallest set of those that
 * holds `topP` of what is left, then one uniform number by inverse distribution in the order of ids.
 */
export function chooseToken(logits: Float32Array, { temperature, topK, topP }: Choice, random: Random): number {
  const best = mostLikely(logits);
  if (temperature === 0) return best;
  const max = logits[best]!;
  const weights = new Float64Array(logits.length);
  let total = 0;
  for (let i = 0; i < weights.length; i++) total += weights[i] = Math.exp((logits[i]! - max) / temperature);
  const limit = topK > 0 ? Math.min(topK, weights.length) : weights.length;
  if (limit < weights.length || topP < 1) total = cut(weights, limit, topP, total);
  let left = random.uniform() * total;
  for (let i = 0; i < weights.length; i++) {
    left -= weights[i]!;
    if (left < 0) return i;
  }
  // Rounding, or weights that are not numbers: the most likely token is always a valid answer.
  return best;
}

/** Zeroes all weights outside the nucleus; returns the sum of the rest. `sum` is that of all weights. */
function cut(weights: Float64Array, limit: number, topP: number, sum: number): number {
  const candidates = limit < weights.length ? sumOfLargest(weights, limit) : sum;
  const kept = new Float64Array(weights.length);
  let total = 0;
  let count = 0;
  takeLargest(weights, (id) => {
    if (count === limit || (total > 0 && total >= topP * candidates)) return false;
    kept[id] = weights[id]!;
    total += weights[id]!;
    count++;
    return true;
  });
  weights.set(kept);
  return total;
}

function sumOfLargest(weights: Float64Array, limit: number): number {
  let sum = 0;
  for (const id of largest(weights, limit)) sum += weights[id]!;
  return sum;
}
