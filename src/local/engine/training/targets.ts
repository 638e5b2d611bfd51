import type { Heap } from '../numeric/heap.js';

/** Logprobs of the targets, [rows, k] row major: p = logit − log Σ exp; and that sum of each row, for the backward pass. */
export function targetLogprobs(
  heap: Heap,
  logits: number,
  rows: number,
  vocabulary: number,
  targets: Int32Array,
  k: number,
): { readonly logprobs: Float32Array; readonly totals: Float64Array } {
  const f = heap.floats;
  const logprobs = new Float32Array(rows * k);
  const totals = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    const at = logits + row * vocabulary;
    const total = heap.logSumExp(at, vocabulary);
    totals[row] = total;
    for (let j = 0; j < k; j++) logprobs[row * k + j] = f[at + targets[row * k + j]!]! - total;
  }
  return { logprobs, totals };
}

/** Replaces the logits by the loss's gradient, given its derivative with respect to each target logprob. */
export function targetLogprobsBackward(
  heap: Heap,
  logits: number,
  rows: number,
  vocabulary: number,
  targets: Int32Array,
  k: number,
  totals: Float64Array,
  gradient: Float32Array,
): void {
  const f = heap.floats;
  for (let row = 0; row < rows; row++) {
    const at = logits + row * vocabulary;
    let total = 0;
    for (let j = 0; j < k; j++) total += gradient[row * k + j]!;
    if (total === 0) {
      f.fill(0, at, at + vocabulary);
    } else {
      heap.kernels.scaledExponential(at, vocabulary, totals[row]!, -total);
    }
    for (let j = 0; j < k; j++) {
      const index = at + targets[row * k + j]!;
      f[index] = f[index]! + gradient[row * k + j]!;
    }
  }
}
