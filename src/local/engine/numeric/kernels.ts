import { assemble } from './wasm/assembler.js';
import { exponentials } from './wasm/exponential.js';
import { gemm } from './wasm/gemm.js';
import { instantiate, type WasmMemory } from './wasm/runtime.js';

/** The WebAssembly kernels, addressed by float offset. Counts and column numbers are multiples of 4. */
export interface Kernels {
  /** C = A·B or C += A·B; B and C contiguous along their columns. */
  readonly gemm: (
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
    accumulate: boolean,
  ) => void;
  /** As `gemm` for a B in panels, as {@link packPanels} makes them: the same sums in the same order, from memory read in a row. */
  readonly gemmPanels: (
    m: number,
    n: number,
    k: number,
    a: number,
    aRow: number,
    panels: number,
    c: number,
    cRow: number,
    accumulate: boolean,
  ) => void;
  /** out = silu(gate) · up. */
  readonly swiglu: (gate: number, up: number, out: number, count: number) => void;
  /** Replaces gate and up by their gradients. */
  readonly swigluBackward: (gate: number, up: number, dOut: number, count: number) => void;
  /** The row becomes softmax(scale · row). An entry of −∞ becomes 0. */
  readonly softmax: (row: number, count: number, scale: number) => void;
  /** out[0] = max, out[1] = Σ exp(x − max). */
  readonly sumExponentials: (row: number, count: number, out: number) => void;
  /** The row becomes factor · exp(row − shift). */
  readonly scaledExponential: (row: number, count: number, shift: number, factor: number) => void;
}

/** Columns of a panel: what the product reads at once. */
const PANEL = 8;

/** Floats that {@link packPanels} writes: the last panel is as wide as the others. */
export const panelFloats = (rows: number, columns: number): number => rows * PANEL * Math.ceil(columns / PANEL);

/**
 * Copies a matrix [rows, columns] into panels of eight columns, each with all its rows one after the other; an element is at
 * `from + row · rowStride + column · columnStride`.
 */
export function packPanels(
  f: Float32Array,
  from: number,
  rows: number,
  columns: number,
  rowStride: number,
  columnStride: number,
  to: number,
): void {
  for (let column = 0; column < columns; column++) {
    const panel = to + Math.floor(column / PANEL) * PANEL * rows + (column % PANEL);
    for (let row = 0; row < rows; row++) f[panel + row * PANEL] = f[from + row * rowStride + column * columnStride]!;
  }
}

type Exports = { readonly [K in Exclude<keyof Kernels, 'gemmPanels'>]: (...args: number[]) => void };

/** Assembles the kernels over a memory. */
export function createKernels(memory: WasmMemory): Kernels {
  const raw = instantiate(assemble([gemm, ...exponentials]), memory) as unknown as Exports;
  return {
    gemm: (m, n, k, a, aRow, aColumn, b, bRow, c, cRow, accumulate) =>
      raw.gemm(m, n, k, 4 * a, 4 * aRow, 4 * aColumn, 4 * b, 4 * bRow, 4, 4 * c, 4 * cRow, accumulate ? 1 : 0),
    gemmPanels: (m, n, k, a, aRow, panels, c, cRow, accumulate) =>
      raw.gemm(m, n, k, 4 * a, 4 * aRow, 4, 4 * panels, 4 * PANEL, 4 * k, 4 * c, 4 * cRow, accumulate ? 1 : 0),
    swiglu: (gate, up, out, count) => raw.swiglu(4 * gate, 4 * up, 4 * out, count),
    swigluBackward: (gate, up, dOut, count) => raw.swigluBackward(4 * gate, 4 * up, 4 * dOut, count),
    softmax: (row, count, scale) => raw.softmax(4 * row, count, scale),
    sumExponentials: (row, count, out) => raw.sumExponentials(4 * row, count, 4 * out),
    scaledExponential: (row, count, shift, factor) => raw.scaledExponential(4 * row, count, shift, factor),
  };
}
