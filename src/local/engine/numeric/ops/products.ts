/**
 * Products of matrices, a share of them at a time. An element of the result is a sum in the order of k, in any thread: results are
 * bit for bit the same for any number of threads.
 */
import { PANEL } from '../kernels.js';
import type { Lane } from '../lane.js';

/** out = x·Wᵀ (+ bias), or added to out, for a frozen W [outputs, inputs]. A share is a range of panels: eight outputs each. */
export function forward(
  lane: Lane,
  first: number,
  end: number,
  panel: number,
  rows: number,
  inputs: number,
  outputs: number,
  x: number,
  weight: number,
  half: number,
  fused: number,
  bias: number,
  out: number,
  outRow: number,
  accumulate: number,
): void {
  const { kernels, floats: f } = lane;
  const gemm = fused === 1 ? kernels.fusedGemm : kernels.gemm;
  for (let column = PANEL * first; column < Math.min(PANEL * end, outputs); column += PANEL) {
    const width = Math.min(PANEL, outputs - column);
    kernels.packRows(weight, half === 1, inputs, column, width, panel);
    gemm(rows, width, inputs, x, inputs, 1, panel, PANEL, out + column, outRow, accumulate === 1);
    if (bias < 0) continue;
    for (let row = 0; row < rows; row++) {
      const at = out + row * outRow + column;
      for (let i = 0; i < width; i++) f[at + i] = f[at + i]! + f[bias + column + i]!;
    }
  }
}

/** dx = dOut·W, or added to dx. A share is a range of panels: eight inputs each. */
export function backward(
  { kernels }: Lane,
  first: number,
  end: number,
  panel: number,
  rows: number,
  inputs: number,
  outputs: number,
  dOut: number,
  dOutRow: number,
  weight: number,
  half: number,
  fused: number,
  dx: number,
  accumulate: number,
): void {
  const gemm = fused === 1 ? kernels.fusedGemm : kernels.gemm;
  for (let column = PANEL * first; column < Math.min(PANEL * end, inputs); column += PANEL) {
    const width = Math.min(PANEL, inputs - column);
    kernels.packColumns(weight, half === 1, outputs, inputs, column, width, panel);
    gemm(rows, width, outputs, dOut, dOutRow, 1, panel, PANEL, dx + column, inputs, accumulate === 1);
  }
}

/** C = A·B or C += A·B, of matrices as they lie. A share is a range of eight columns each, or of eight rows each with `byRows`. */
export function product(
  { kernels }: Lane,
  first: number,
  end: number,
  _scratch: number,
  byRows: number,
  fused: number,
  m: number,
  n: number,
  k: number,
  a: number,
  aRow: number,
  aColumn: number,
  b: number,
  bRow: number,
  c: number,
  cRow: number,
  accumulate: number,
): void {
  const gemm = fused === 1 ? kernels.fusedGemm : kernels.gemm;
  const from = PANEL * first;
  if (byRows === 1) {
    const rows = Math.min(PANEL * end, m) - from;
    gemm(rows, n, k, a + from * aRow, aRow, aColumn, b, bRow, c + from * cRow, cRow, accumulate === 1);
  } else {
    const columns = Math.min(PANEL * end, n) - from;
    gemm(m, columns, k, a, aRow, aColumn, b + from, bRow, c + from, cRow, accumulate === 1);
  }
}
