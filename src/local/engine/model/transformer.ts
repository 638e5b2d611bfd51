import { finish, type Steps } from '../thread/breathe.js';
import { positionsOf, type Run } from './attention.js';
import type { BaseGradients, BaseModel } from './baseModel.js';
import type { Heap } from '../numeric/heap.js';
import type { KvCache } from './kvCache.js';
import { embed, forwardLayer, type LayerTape, type Pass, PER_LAYER } from './layer.js';
import { backwardLayer } from './layerBackward.js';
import { linearBackward, linearForward } from './linear.js';
import type { ResidentAdapter } from './residentAdapter.js';
import { NORM_EPS } from './shapes.js';
import { layersKept } from './tapeMemory.js';

export interface ForwardOptions {
  /** Keep what the backward pass needs, layers up to this number of floats; it computes the other layers again. Default: keep nothing. */
  readonly tapeFloats?: number;
  /** Continue the sequence that is there, and add to it. */
  readonly cache?: KvCache;
}

/** The result of a forward pass over a sequence, in scratch memory: valid until the mark taken before is released. */
export interface SequenceTape {
  readonly tokens: Int32Array;
  /** The input of each layer, and what is kept of it. */
  readonly inputs: readonly number[];
  readonly layers: readonly (LayerTape | undefined)[];
  readonly positions: number;
  readonly last: number;
  readonly normed: number;
  readonly inverse: number;
  /** Where the gradient of `normed` is gathered; only of a pass with a tape. */
  readonly dNormed: number;
}

/**
 * The forward and backward passes of one base model, with or without an adapter. They work in scratch memory.
 *
 * A pass over a long sequence takes seconds. Its form in steps yields every few milliseconds of work, so that samples can run in
 * between: those take their scratch memory after that of the pass and give it back before it continues. Two passes must not
 * be mixed so.
 */
export class Transformer {
  readonly heap: Heap;
  readonly base: BaseModel;

  constructor(heap: Heap, base: BaseModel) {
    this.heap = heap;
    this.base = base;
  }

  /** Runs a sequence, or the part of it after what its cache has. */
  forward(tokens: Int32Array, adapter: ResidentAdapter | undefined, options: ForwardOptions = {}): SequenceTape {
    return finish(this.forwardInSteps(tokens, adapter, options));
  }

  /** As {@link forward}. */
  *forwardInSteps(
    tokens: Int32Array,
    adapter: ResidentAdapter | undefined,
    { tapeFloats, cache }: ForwardOptions = {},
  ): Steps<SequenceTape> {
    const rows = tokens.length;
    cache?.reserve(cache.length + rows);
    const pass = this.#pass([{ row: 0, rows, cache }], rows, adapter);
    const { layers, width } = this.base.shape;
    const size = rows * width;
    const dNormed = tapeFloats === undefined ? -1 : this.heap.scratch(size);
    const kept = tapeFloats === undefined ? 0 : layersKept(this.base.shape, adapter?.rank ?? 0, rows, tapeFloats);
    const inputs: number[] = [];
    const tape: (LayerTape | undefined)[] = [];
    let x = embed(pass, tokens);
    for (let layer = 0; layer < layers; layer++) {
      inputs.push(x);
      const next = tapeFloats === undefined ? x : this.heap.scratch(size);
      const mark = this.heap.mark();
      const result = yield* forwardLayer(pass, layer, x, next);
      const keep = layer >= layers - kept;
      tape.push(keep ? result : undefined);
      if (!keep) this.heap.release(mark);
      x = next;
    }
    if (cache !== undefined) cache.length += rows;
    return { tokens, inputs, layers: tape, positions: pass.positions, last: x, dNormed, ...this.#finalNorm(x, rows) };
  }

  /** One more token for each of several sequences, all with the same adapter. Returns the rows before the head. */
  step(tokens: Int32Array, caches: readonly KvCache[], adapter: ResidentAdapter | undefined): number {
    const rows = tokens.length;
    for (const cache of caches) cache.reserve(cache.length + 1);
    const runs = caches.map((cache, row) => ({ row, rows: 1, cache }));
    const pass = this.#pass(runs, rows, adapter);
    const x = embed(pass, tokens);
    for (let layer = 0; layer < this.base.shape.layers; layer++) {
      const mark = this.heap.mark();
      finish(forwardLayer(pass, layer, x, x));
      this.heap.release(mark);
    }
    for (const cache of caches) cache.length++;
    return this.#finalNorm(x, rows).normed;
  }

  /** Logits [rows, vocabulary] of rows that {@link forward} or {@link step} left, and the adapter's part for the backward pass. */
  head(
    normed: number,
    rows: number,
    adapter: ResidentAdapter | undefined,
  ): { readonly logits: number; readonly low: number } {
    const logits = this.heap.scratch(rows * this.base.shape.vocabulary);
    const low = linearForward(this.heap, this.base, this.#headIndex, adapter, rows, normed, logits, false);
    return { logits, low };
  }

  /** Takes dLogits of some rows back through the head: sets their part of the tape's `dNormed`. */
  headBackward(
    tape: SequenceTape,
    from: number,
    rows: number,
    low: number,
    dLogits: number,
    adapter: ResidentAdapter | undefined,
    gradients?: BaseGradients,
  ): void {
    const at = from * this.base.shape.width;
    const [normed, dNormed] = [tape.normed + at, tape.dNormed + at];
    linearBackward(
      this.heap,
      this.base,
      this.#headIndex,
      adapter,
      gradients,
      rows,
      normed,
      low,
      dLogits,
      dNormed,
      false,
    );
  }

  /** Adds to the adapter's gradients (and to `gradients`) what follows from the tape's `dNormed`. */
  backward(tape: SequenceTape, adapter: ResidentAdapter | undefined, gradients?: BaseGradients): void {
    finish(this.backwardInSteps(tape, adapter, gradients));
  }

  /** As {@link backward}. */
  *backwardInSteps(tape: SequenceTape, adapter: ResidentAdapter | undefined, gradients?: BaseGradients): Steps<void> {
    const { heap, base } = this;
    const { width, layers } = base.shape;
    const { tokens, positions, dNormed } = tape;
    const rows = tokens.length;
    const lowest = gradients === undefined ? Math.floor((adapter?.lowest ?? Infinity) / PER_LAYER) : 0;
    if (lowest >= layers) return;
    const mark = heap.mark();
    const pass: Pass = { heap, base, rows, adapter, runs: [{ row: 0, rows }], positions };
    const dx = heap.scratch(rows * width);
    heap.floats.fill(0, dx, dx + rows * width);
    const dGain = gradients?.norms[2 * layers] ?? -1;
    const split = { count: rows, alone: dGain >= 0 };
    heap.run('normBackward', split, width, tape.last, base.norms[2 * layers]!, tape.inverse, dNormed, dx, dGain);
    for (let layer = layers - 1; layer >= lowest; layer--) {
      const inner = heap.mark();
      const x = tape.inputs[layer]!;
      const saved = tape.layers[layer] ?? (yield* forwardLayer(pass, layer, x, heap.scratch(rows * width)));
      yield* backwardLayer(pass, layer, x, saved, dx, dNormed, gradients);
      heap.release(inner);
    }
    if (gradients !== undefined) {
      const f = heap.floats;
      tokens.forEach((token, row) => {
        const to = gradients.embedding + token * width;
        for (let i = 0; i < width; i++) f[to + i] = f[to + i]! + f[dx + row * width + i]!;
      });
    }
    heap.release(mark);
  }

  get #headIndex(): number {
    return this.base.shape.layers * PER_LAYER;
  }

  #pass(runs: readonly Run[], rows: number, adapter: ResidentAdapter | undefined): Pass {
    const { heap, base } = this;
    return { heap, base, rows, adapter, runs, positions: positionsOf(heap, runs, rows) };
  }

  #finalNorm(x: number, rows: number): { readonly normed: number; readonly inverse: number } {
    const { heap, base } = this;
    const { width, layers, normEps = NORM_EPS } = base.shape;
    const [normed, inverse] = [heap.scratch(rows * width), heap.scratch(rows)];
    heap.run('norm', { count: rows }, width, normEps, x, base.norms[2 * layers]!, normed, inverse);
    return { normed, inverse };
  }
}
