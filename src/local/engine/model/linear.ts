import type { BaseGradients, BaseModel } from './baseModel.js';
import type { Heap } from '../numeric/heap.js';
import type { ResidentAdapter } from './residentAdapter.js';

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
  const { inputs, outputs, forward } = base.linears[index]!;
  heap.kernels.gemmPanels(rows, outputs, inputs, x, inputs, forward, out, outputs, accumulate);
  const factors = adapter?.get(index);
  if (adapter === undefined || factors === undefined) return -1;
  const { rank } = adapter;
  const low = heap.scratch(rows * rank);
  heap.kernels.gemm(rows, rank, inputs, x, inputs, 1, factors.aScaled, rank, low, rank, false);
  heap.kernels.gemm(rows, outputs, rank, low, rank, 1, factors.bTransposed, outputs, out, outputs, true);
  return low;
}

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
  const { inputs, outputs, backward } = base.linears[index]!;
  heap.kernels.gemmPanels(rows, inputs, outputs, dOut, outputs, backward, dx, inputs, accumulate);
  if (gradients !== undefined) {
    heap.kernels.gemm(outputs, inputs, rows, dOut, 1, outputs, x, inputs, gradients.linears[index]!, inputs, true);
  }
  const factors = adapter?.get(index);
  if (adapter === undefined || factors === undefined) return;
  const { rank, scale } = adapter;
  const mark = heap.mark();
  const dLow = heap.scratch(rows * rank);
  heap.kernels.gemm(rows, rank, outputs, dOut, outputs, 1, factors.b, rank, dLow, rank, false);
  const f = heap.floats;
  for (let i = dLow; i < dLow + rows * rank; i++) f[i] = f[i]! * scale;
  heap.kernels.gemm(rows, inputs, rank, dLow, rank, 1, factors.a, inputs, dx, inputs, true);
  heap.kernels.gemm(rank, inputs, rows, dLow, 1, rank, x, inputs, factors.dA, inputs, true);
  heap.kernels.gemm(outputs, rank, rows, dOut, 1, outputs, low, rank, factors.dB, rank, true);
  heap.release(mark);
}
