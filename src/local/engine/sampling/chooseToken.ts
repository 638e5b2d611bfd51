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
  const order = Int32Array.from({ length: values.length }, (_, index) => index);
  order.sort((a, b) => values[b]! - values[a]! || a - b);
  return order.subarray(0, k);
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
  if (limit < weights.length || topP < 1) total = cut(weights, limit, topP);
  let left = random.uniform() * total;
  for (let i = 0; i < weights.length; i++) {
    left -= weights[i]!;
    if (left < 0) return i;
  }
  // Rounding, or weights that are not numbers: the most likely token is always a valid answer.
  return best;
}

/** Zeroes all weights outside the nucleus; returns the sum of the rest. */
function cut(weights: Float64Array, limit: number, topP: number): number {
  const order = largest(weights, limit);
  let candidates = 0;
  for (const id of order) candidates += weights[id]!;
  const kept = new Float64Array(weights.length);
  let total = 0;
  for (const id of order) {
    if (total > 0 && total >= topP * candidates) break;
    kept[id] = weights[id]!;
    total += weights[id]!;
  }
  weights.set(kept);
  return total;
}
