import type { BaseGradients, BaseModel } from './baseModel.js';
import type { Heap } from '../numeric/heap.js';
import { PANEL } from '../numeric/kernels.js';
import type { ResidentAdapter } from './residentAdapter.js';

const panels = (columns: number) => Math.ceil(columns / PANEL);

/** C = A·B or C += A·B, split along the longer side of C. */
function multiply(
  heap: Heap,
  fused: boolean,
  m: number,
  n: number,
  k: number,
  a: number,
  aRow: number,
  aColumn: number,
  b: number,
  c: number,
  accumulate: boolean,
): void {
  const byRows = m > n;
  const args = [a, aRow, aColumn, b, n, c, n, Number(accumulate)] as const;
  heap.run('product', { count: panels(byRows ? m : n) }, Number(byRows), Number(fused), m, n, k, ...args);
}

/**
 * out = x·Wᵀ + x·(scale·Aᵀ)·Bᵀ, or added to out. Returns where x·(scale·Aᵀ) is kept for the backward pass, -1 where the
 * matrix is not adapted.
 */
export function linearForward(
  heap: Heap,
  base: BaseModel,
  index: number,
  adapter: ResidentAdapter | undefined,
  rows: number,
  x: number,
  out: number,
  accumulate: boolean,
): number {
  const { inputs, outputs, weight, half, bias } = base.linears[index]!;
  const split = { count: panels(outputs), scratch: PANEL * inputs };
  const matrix = [weight, Number(half), Number(base.fused), bias] as const;
  heap.run('forward', split, rows, inputs, outputs, x, ...matrix, out, outputs, Number(accumulate));
  const factors = adapter?.get(index);
  if (adapter === undefined || factors === undefined) return -1;
  const { rank } = adapter;
  const low = heap.scratch(rows * rank);
  multiply(heap, base.fused, rows, rank, inputs, x, inputs, 1, factors.aScaled, low, false);
  multiply(heap, base.fused, rows, outputs, rank, low, rank, 1, factors.bTransposed, out, true);
  return low;
}

/** Outputs that one product of the backward pass takes at once: what of W is then read over and over stays in the cache. */
const OUTPUTS_AT_ONCE = 2048;

/** What flows back to x (set, or added with `accumulate`), to A and B, and, where asked, to W itself. */
export function linearBackward(
  heap: Heap,
  base: BaseModel,
  index: number,
  adapter: ResidentAdapter | undefined,
  gradients: BaseGradients | undefined,
  rows: number,
  x: number,
  low: number,
  dOut: number,
  dx: number,
  accumulate: boolean,
): void {
  const { inputs, outputs, weight, half } = base.linears[index]!;
  const { fused } = base;
  for (let from = 0; from < outputs; from += OUTPUTS_AT_ONCE) {
    const taken = Math.min(OUTPUTS_AT_ONCE, outputs - from);
    const split = { count: panels(inputs), scratch: PANEL * taken };
    const matrix = [weight + (from * inputs) / (half ? 2 : 1), Number(half), Number(fused)] as const;
    const add = Number(accumulate || from > 0);
    heap.run('backward', split, rows, inputs, taken, dOut + from, outputs, ...matrix, dx, add);
  }
  if (gradients !== undefined) {
    multiply(heap, fused, outputs, inputs, rows, dOut, 1, outputs, x, gradients.linears[index]!, true);
  }
  const factors = adapter?.get(index);
  if (adapter === undefined || factors === undefined) return;
  const { rank, scale } = adapter;
  const mark = heap.mark();
  const dLow = heap.scratch(rows * rank);
  multiply(heap, fused, rows, rank, outputs, dOut, outputs, 1, factors.b, dLow, false);
  const f = heap.floats;
  for (let i = dLow; i < dLow + rows * rank; i++) f[i] = f[i]! * scale;
  multiply(heap, fused, rows, inputs, rank, dLow, rank, 1, factors.a, dx, true);
  multiply(heap, fused, rank, inputs, rows, dLow, 1, rank, x, factors.dA, true);
  multiply(heap, fused, outputs, rank, rows, dOut, 1, outputs, low, factors.dB, true);
  heap.release(mark);
}
