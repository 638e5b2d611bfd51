import { assemble } from './wasm/assembler.js';
import { exponentials } from './wasm/exponential.js';
import { fusedGemm, gemm } from './wasm/gemm.js';
import { panels } from './wasm/panels.js';
import { compiles, instantiate, type WasmMemory } from './wasm/runtime.js';

type Gemm = (
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

/** The WebAssembly kernels, addressed by float offset. Counts and column numbers are multiples of 4. */
export interface Kernels {
  /** C = A·B or C += A·B; B and C contiguous along their columns. */
  readonly gemm: Gemm;
  /** As `gemm`, with each product and sum rounded once where this Node can; otherwise the same function. */
  readonly fusedGemm: Gemm;
  /** Eight rows (or four) of a matrix of `columns` become a panel: its columns. `row` is the first of them. */
  readonly packRows: (
    matrix: number,
    half: boolean,
    columns: number,
    row: number,
    width: number,
    panel: number,
  ) => void;
  /** Eight columns (or four) of a matrix of `rows` by `columns` become a panel. */
  readonly packColumns: (
    matrix: number,
    half: boolean,
    rows: number,
    columns: number,
    column: number,
    width: number,
    panel: number,
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

/** Columns of a panel: what the product reads at once. A panel of k rows takes k times as many floats. */
export const PANEL = 8;

type Raw = Readonly<Record<string, (...args: number[]) => void>>;

const fused = compiles(assemble([fusedGemm]));
let module: Uint8Array | undefined;

/** Assembles the kernels over a memory. */
export function createKernels(memory: WasmMemory): Kernels {
  module ??= assemble([gemm, ...(fused ? [fusedGemm] : []), ...panels, ...exponentials]);
  const raw = instantiate(module, memory) as Raw;
  const product =
    (run: Raw[string]): Gemm =>
    (m, n, k, a, aRow, aColumn, b, bRow, c, cRow, accumulate) =>
      run(m, n, k, 4 * a, 4 * aRow, 4 * aColumn, 4 * b, 4 * bRow, 4, 4 * c, 4 * cRow, accumulate ? 1 : 0);
  const { f32Rows, bf16Rows, f32Columns8, f32Columns4, bf16Columns8, bf16Columns4 } = raw as Record<
    string,
    Raw[string]
  >;
  return {
    gemm: product(raw['gemm']!),
    fusedGemm: product(raw[fused ? 'fusedGemm' : 'gemm']!),
    packRows: (matrix, half, columns, row, width, panel) => {
      const bytes = (half ? 2 : 4) * columns;
      for (let i = 0; i < width; i += 4)
        (half ? bf16Rows : f32Rows)!(4 * matrix + (row + i) * bytes, bytes, columns, 4 * (panel + i));
    },
    packColumns: (matrix, half, rows, columns, column, width, panel) => {
      const bytes = half ? 2 : 4;
      const wide = width === PANEL;
      const run = half ? (wide ? bf16Columns8 : bf16Columns4) : wide ? f32Columns8 : f32Columns4;
      run!(4 * matrix + column * bytes, bytes * columns, rows, 4 * panel);
    },
    swiglu: (gate, up, out, count) => raw['swiglu']!(4 * gate, 4 * up, 4 * out, count),
    swigluBackward: (gate, up, dOut, count) => raw['swigluBackward']!(4 * gate, 4 * up, 4 * dOut, count),
    softmax: (row, count, scale) => raw['softmax']!(4 * row, count, scale),
    sumExponentials: (row, count, out) => raw['sumExponentials']!(4 * row, count, 4 * out),
    scaledExponential: (row, count, shift, factor) => raw['scaledExponential']!(4 * row, count, shift, factor),
  };
}
