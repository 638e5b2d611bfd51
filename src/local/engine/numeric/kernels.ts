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

type Exports = { readonly [K in keyof Kernels]: (...args: number[]) => void };

/** Assembles the kernels over a memory. */
export function createKernels(memory: WasmMemory): Kernels {
  const raw = instantiate(assemble([gemm, ...exponentials]), memory) as unknown as Exports;
  return {
    gemm: (m, n, k, a, aRow, aColumn, b, bRow, c, cRow, accumulate) =>
      raw.gemm(m, n, k, 4 * a, 4 * aRow, 4 * aColumn, 4 * b, 4 * bRow, 4 * c, 4 * cRow, accumulate ? 1 : 0),
    swiglu: (gate, up, out, count) => raw.swiglu(4 * gate, 4 * up, 4 * out, count),
    swigluBackward: (gate, up, dOut, count) => raw.swigluBackward(4 * gate, 4 * up, 4 * dOut, count),
    softmax: (row, count, scale) => raw.softmax(4 * row, count, scale),
    sumExponentials: (row, count, out) => raw.sumExponentials(4 * row, count, 4 * out),
    scaledExponential: (row, count, shift, factor) => raw.scaledExponential(4 * row, count, shift, factor),
  };
}
