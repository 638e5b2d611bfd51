import type { AdapterLayout } from './adapter.js';
import type { Heap } from '../numeric/heap.js';
import { transpose } from '../numeric/transpose.js';

/** One adapted matrix in the heap, the rank padded to a multiple of 4 with zeros. */
export interface ResidentFactors {
  /** A [rank, inputs], for the backward pass. */
  readonly a: number;
  /** scale · Aᵀ [inputs, rank], for the forward pass. */
  readonly aScaled: number;
  /** B [outputs, rank]. */
  readonly b: number;
  /** Bᵀ [rank, outputs]. */
  readonly bTransposed: number;
  /** Gradients of A and B, or -1. */
  readonly dA: number;
  readonly dB: number;
}

/** The rank, padded to what the kernels want. */
const paddedRank = ({ lora }: AdapterLayout): number => (lora.rank + 3) & ~3;

/** The floats that an adapter takes in the heap; half as many again with gradients. */
export const residentFloats = (layout: AdapterLayout): number =>
  2 * layout.slots.reduce((sum, { inputs, outputs }) => sum + paddedRank(layout) * (inputs + outputs), 0);

/** An adapter's weights in the heap, in the layouts the kernels want; with room for gradients if asked. */
export class ResidentAdapter {
  readonly rank: number;
  readonly scale: number;
  /** The lowest matrix that is adapted: nothing needs to flow back below it. */
  readonly lowest: number;
  readonly #heap: Heap;
  readonly #layout: AdapterLayout;
  readonly #factors = new Map<number, ResidentFactors>();
  readonly #block: number;

  constructor(heap: Heap, layout: AdapterLayout, weights: Float32Array, gradients?: Float32Array) {
    this.#heap = heap;
    this.#layout = layout;
    this.scale = layout.scale;
    this.lowest = layout.slots[0]?.linear ?? Infinity;
    const rank = layout.lora.rank;
    const padded = paddedRank(layout);
    this.rank = padded;
    const size = residentFloats(layout) * (gradients === undefined ? 1 : 1.5);
    this.#block = heap.alloc(size);
    const f = heap.floats;
    f.fill(0, this.#block, this.#block + size);
    let at = this.#block;
    const take = (count: number) => {
      const start = at;
      at += count;
      return start;
    };
    for (const slot of layout.slots) {
      const { inputs, outputs } = slot;
      const a = take(padded * inputs);
      const aScaled = take(padded * inputs);
      const b = take(padded * outputs);
      const bTransposed = take(padded * outputs);
      f.set(weights.subarray(slot.a, slot.b), a);
      for (let row = 0; row < outputs; row++) {
        f.set(weights.subarray(slot.b + row * rank, slot.b + (row + 1) * rank), b + row * padded);
      }
      transpose(f, a, padded, inputs, inputs, aScaled, padded, layout.scale);
      transpose(f, b, outputs, padded, padded, bTransposed, outputs);
      let dA = -1;
      let dB = -1;
      if (gradients !== undefined) {
        dA = take(padded * inputs);
        dB = take(padded * outputs);
        f.set(gradients.subarray(slot.a, slot.b), dA);
        for (let row = 0; row < outputs; row++) {
          f.set(gradients.subarray(slot.b + row * rank, slot.b + (row + 1) * rank), dB + row * padded);
        }
      }
      this.#factors.set(slot.linear, { a, aScaled, b, bTransposed, dA, dB });
    }
  }

  get(linear: number): ResidentFactors | undefined {
    return this.#factors.get(linear);
  }

  /** False if a gradient is infinite or NaN. */
  hasFiniteGradients(): boolean {
    const f = this.#heap.floats;
    const within = (from: number, count: number): boolean => {
      let zero = 0;
      for (let i = from; i < from + count; i++) zero += 0 * f[i]!;
      return zero === 0;
    };
    return this.#layout.slots.every(({ linear, inputs, outputs }) => {
      const { dA, dB } = this.#factors.get(linear)!;
      return within(dA, this.rank * inputs) && within(dB, this.rank * outputs);
    });
  }

  /** Copies the gradients out. */
  readGradients(into: Float32Array): void {
    const f = this.#heap.floats;
    const rank = this.#layout.lora.rank;
    for (const slot of this.#layout.slots) {
      const { dA, dB } = this.#factors.get(slot.linear)!;
      into.set(f.subarray(dA, dA + rank * slot.inputs), slot.a);
      for (let row = 0; row < slot.outputs; row++) {
        const from = dB + row * this.rank;
        into.set(f.subarray(from, from + rank), slot.b + row * rank);
      }
    }
  }

  dispose(): void {
    this.#heap.free(this.#block);
  }
}
