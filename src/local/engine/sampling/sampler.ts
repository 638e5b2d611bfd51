import type { AdapterLayout } from '../model/adapter.js';
import type { Heap } from '../numeric/heap.js';
import { ResidentAdapter, residentFloats } from '../model/residentAdapter.js';
import type { Transformer } from '../model/transformer.js';

/** Weights to sample from: a base model, with or without a copy of an adapter. In the heap only while in use. */
export class Sampler {
  readonly transformer: Transformer;
  readonly #heap: Heap;
  readonly #source: { readonly layout: AdapterLayout; readonly weights: Float32Array } | undefined;
  #resident: ResidentAdapter | undefined;
  #users = 0;

  /** `weights` must be the sampler's own copy. */
  constructor(transformer: Transformer, source?: { readonly layout: AdapterLayout; readonly weights: Float32Array }) {
    this.transformer = transformer;
    this.#heap = transformer.heap;
    this.#source = source;
  }

  /** Floats of the heap that the adapter takes while it is in use. */
  get floats(): number {
    return this.#source === undefined ? 0 : residentFloats(this.#source.layout);
  }

  adapter(): ResidentAdapter | undefined {
    if (this.#source === undefined) return undefined;
    this.#resident ??= new ResidentAdapter(this.#heap, this.#source.layout, this.#source.weights);
    return this.#resident;
  }

  retain(): void {
    this.#users++;
  }

  release(): void {
    if (--this.#users > 0) return;
    this.#resident?.dispose();
    this.#resident = undefined;
  }
}
