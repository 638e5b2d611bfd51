import type { Heap } from '../numeric/heap.js';

/** Logprobs of the targets of some rows, [rows, k] row major: p = logit − log Σ exp; and that sum of each row, for the backward pass. */
export function targetLogprobs(
  heap: Heap,
  logits: number,
  rows: number,
  vocabulary: number,
  targets: Int32Array,
  k: number,
): { readonly logprobs: Float32Array; readonly totals: Float64Array } {
  const totals = heap.logSumExp(rows, logits, vocabulary);
  const f = heap.floats;
  const logprobs = Float32Array.from({ length: rows * k }, (_, i) => {
    const row = Math.floor(i / k);
    return f[logits + row * vocabulary + targets[i]!]! - totals[row]!;
  });
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
  const mark = heap.mark();
  const pairs = heap.scratch(2 * rows);
  const f = heap.floats;
  for (let row = 0; row < rows; row++) {
    let total = 0;
    for (let j = 0; j < k; j++) total += gradient[row * k + j]!;
    f[pairs + 2 * row] = totals[row]!;
    f[pairs + 2 * row + 1] = -total;
  }
  heap.run('scaledExponentials', { count: rows }, vocabulary, logits, pairs);
  for (let i = 0; i < rows * k; i++) {
    const index = logits + Math.floor(i / k) * vocabulary + targets[i]!;
    f[index] = f[index]! + gradient[i]!;
  }
  heap.release(mark);
}
