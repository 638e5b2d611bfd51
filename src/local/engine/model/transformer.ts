import { finish, type Steps } from '../thread/breathe.js';
import { attendCached, attendSequence, attendSequenceBackward } from './attention.js';
import type { BaseGradients, BaseModel } from './baseModel.js';
import { rmsNorm, rmsNormBackward } from '../numeric/elementwise.js';
import type { Heap } from '../numeric/heap.js';
import type { KvCache } from './kvCache.js';
import { linearBackward, linearForward } from './linear.js';
import type { ResidentAdapter } from './residentAdapter.js';
import { LAYER_LINEARS } from './shapes.js';

const [Q, K, V, O, GATE, UP, DOWN] = [0, 1, 2, 3, 4, 5, 6] as const;
const PER_LAYER = LAYER_LINEARS.length;

/** What a layer leaves behind for the backward pass: offsets of its inputs and intermediate results. */
interface LayerTape {
  x: number;
  normed: number;
  inverse: number;
  q: number;
  k: number;
  v: number;
  attended: number;
  middle: number;
  normed2: number;
  inverse2: number;
  gate: number;
  up: number;
  gated: number;
  /** x·(scale·Aᵀ) of each adapted matrix, or -1. */
  low: number[];
}

export interface ForwardOptions {
  readonly tape?: boolean;
  readonly cache?: KvCache;
}

/** Attention of all rows of a layer, at once or in steps. */
type Attend = (layer: number, q: number, k: number, v: number, out: number) => Steps<void> | void;

/** The result of a forward pass over a sequence, in scratch memory: valid until the mark taken before is released. */
export interface SequenceTape {
  readonly tokens: Int32Array;
  readonly layers: readonly LayerTape[];
  readonly last: number;
  readonly normed: number;
  readonly inverse: number;
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

  /** Runs a sequence. With `tape` everything the backward pass needs is kept; with `cache` it is filled. */
  forward(tokens: Int32Array, adapter: ResidentAdapter | undefined, options: ForwardOptions = {}): SequenceTape {
    return finish(this.forwardInSteps(tokens, adapter, options));
  }

  /** As {@link forward}. */
  *forwardInSteps(
    tokens: Int32Array,
    adapter: ResidentAdapter | undefined,
    { tape = false, cache }: ForwardOptions = {},
  ): Steps<SequenceTape> {
    const rows = tokens.length;
    const x = this.#embed(tokens);
    const layers: LayerTape[] = [];
    const last = yield* this.#layers(x, rows, adapter, tape ? layers : undefined, (layer, q, k, v, out) =>
      attendSequence(this.heap, this.base, layer, rows, q, k, v, out, cache),
    );
    if (cache !== undefined) cache.length = rows;
    return { tokens, layers, last, ...this.#finalNorm(last, rows) };
  }

  /** One more token for each of several sequences, all with the same adapter. Returns the rows before the head. */
  step(tokens: Int32Array, caches: readonly KvCache[], adapter: ResidentAdapter | undefined): number {
    const { width } = this.base.shape;
    const rows = tokens.length;
    for (const cache of caches) cache.reserve(cache.length + 1);
    const scores = this.heap.scratch(Math.max(...caches.map((cache) => cache.capacity)));
    const x = this.#embed(tokens);
    const attend: Attend = (layer, q, k, v, out) => {
      for (let row = 0; row < rows; row++) {
        const at = row * width;
        attendCached(this.heap, this.base, layer, q + at, k + at, v + at, out + at, caches[row]!, scores);
      }
    };
    const last = finish(this.#layers(x, rows, adapter, undefined, attend));
    for (const cache of caches) cache.length++;
    return this.#finalNorm(last, rows).normed;
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

  /** Adds to the adapter's gradients (and to `gradients`) what follows from dLogits. */
  backward(
    tape: SequenceTape,
    low: number,
    dLogits: number,
    adapter: ResidentAdapter | undefined,
    gradients?: BaseGradients,
  ): void {
    finish(this.backwardInSteps(tape, low, dLogits, adapter, gradients));
  }

  /** As {@link backward}. */
  *backwardInSteps(
    tape: SequenceTape,
    low: number,
    dLogits: number,
    adapter: ResidentAdapter | undefined,
    gradients?: BaseGradients,
  ): Steps<void> {
    const { heap, base } = this;
    const { width, hidden, layers } = base.shape;
    const rows = tape.tokens.length;
    const mark = heap.mark();
    const size = rows * width;
    const dNormed = heap.scratch(size);
    const dx = heap.scratch(size);
    linearBackward(heap, base, this.#headIndex, adapter, gradients, rows, tape.normed, low, dLogits, dNormed, false);
    heap.floats.fill(0, dx, dx + size);
    const lowest = gradients === undefined ? Math.floor((adapter?.lowest ?? Infinity) / PER_LAYER) : 0;
    if (lowest < layers) {
      const dGain = gradients?.norms[2 * layers] ?? -1;
      rmsNormBackward(heap.floats, tape.last, base.norms[2 * layers]!, tape.inverse, dNormed, dx, rows, width, dGain);
    }
    for (let layer = layers - 1; layer >= lowest; layer--) {
      const saved = tape.layers[layer]!;
      const inner = heap.mark();
      const back = (which: number, input: number, dOut: number, dInput: number, accumulate: boolean) => {
        const index = layer * PER_LAYER + which;
        const low = saved.low[which]!;
        linearBackward(heap, base, index, adapter, gradients, rows, input, low, dOut, dInput, accumulate);
      };

      const dGated = heap.scratch(rows * hidden);
      back(DOWN, saved.gated, dx, dGated, false);
      yield;
      heap.kernels.swigluBackward(saved.gate, saved.up, dGated, rows * hidden);
      back(GATE, saved.normed2, saved.gate, dNormed, false);
      yield;
      back(UP, saved.normed2, saved.up, dNormed, true);
      yield;
      const dGain2 = gradients?.norms[2 * layer + 1] ?? -1;
      rmsNormBackward(
        heap.floats,
        saved.middle,
        base.norms[2 * layer + 1]!,
        saved.inverse2,
        dNormed,
        dx,
        rows,
        width,
        dGain2,
      );

      const dAttended = heap.scratch(size);
      const [dq, dk, dv] = [heap.scratch(size), heap.scratch(size), heap.scratch(size)];
      back(O, saved.attended, dx, dAttended, false);
      yield;
      yield* attendSequenceBackward(heap, base, rows, saved.q, saved.k, saved.v, dAttended, dq, dk, dv);
      back(Q, saved.normed, dq, dNormed, false);
      yield;
      back(K, saved.normed, dk, dNormed, true);
      yield;
      back(V, saved.normed, dv, dNormed, true);
      yield;
      const dGain = gradients?.norms[2 * layer] ?? -1;
      rmsNormBackward(heap.floats, saved.x, base.norms[2 * layer]!, saved.inverse, dNormed, dx, rows, width, dGain);
      heap.release(inner);
    }
    if (gradients !== undefined) {
      const f = heap.floats;
      tape.tokens.forEach((token, row) => {
        const to = gradients.embedding + token * width;
        for (let i = 0; i < width; i++) f[to + i] = f[to + i]! + f[dx + row * width + i]!;
      });
    }
    heap.release(mark);
  }

  get #headIndex(): number {
    return this.base.shape.layers * PER_LAYER;
  }

  #embed(tokens: Int32Array): number {
    const { width } = this.base.shape;
    const x = this.heap.scratch(tokens.length * width);
    const f = this.heap.floats;
    tokens.forEach((token, row) => {
      const from = this.base.embedding + token * width;
      f.copyWithin(x + row * width, from, from + width);
    });
    return x;
  }

  #finalNorm(x: number, rows: number): { readonly normed: number; readonly inverse: number } {
    const { width, layers } = this.base.shape;
    const normed = this.heap.scratch(rows * width);
    const inverse = this.heap.scratch(rows);
    rmsNorm(this.heap.floats, x, this.base.norms[2 * layers]!, normed, inverse, rows, width);
    return { normed, inverse };
  }

  *#layers(
    x: number,
    rows: number,
    adapter: ResidentAdapter | undefined,
    tape: LayerTape[] | undefined,
    attend: Attend,
  ): Steps<number> {
    const { heap, base } = this;
    const { width, hidden, layers } = base.shape;
    const size = rows * width;
    const copy = (from: number): number => {
      const to = heap.scratch(size);
      heap.floats.copyWithin(to, from, from + size);
      return to;
    };
    for (let layer = 0; layer < layers; layer++) {
      const mark = heap.mark();
      const low = new Array<number>(PER_LAYER).fill(-1);
      const run = (which: number, input: number, output: number, accumulate: boolean) => {
        low[which] = linearForward(heap, base, layer * PER_LAYER + which, adapter, rows, input, output, accumulate);
      };
      const normed = heap.scratch(size);
      const inverse = heap.scratch(rows);
      const [q, k, v, attended] = [heap.scratch(size), heap.scratch(size), heap.scratch(size), heap.scratch(size)];
      rmsNorm(heap.floats, x, base.norms[2 * layer]!, normed, inverse, rows, width);
      run(Q, normed, q, false);
      yield;
      run(K, normed, k, false);
      yield;
      run(V, normed, v, false);
      yield;
      yield* attend(layer, q, k, v, attended) ?? [];
      const middle = tape === undefined ? x : copy(x);
      run(O, attended, middle, true);

      const normed2 = heap.scratch(size);
      const inverse2 = heap.scratch(rows);
      const [gate, up, gated] = [heap.scratch(rows * hidden), heap.scratch(rows * hidden), heap.scratch(rows * hidden)];
      rmsNorm(heap.floats, middle, base.norms[2 * layer + 1]!, normed2, inverse2, rows, width);
      run(GATE, normed2, gate, false);
      yield;
      run(UP, normed2, up, false);
      yield;
      heap.kernels.swiglu(gate, up, gated, rows * hidden);
      const next = tape === undefined ? x : copy(middle);
      run(DOWN, gated, next, true);
      yield;

      tape?.push({ x, normed, inverse, q, k, v, attended, middle, normed2, inverse2, gate, up, gated, low });
      x = next;
      if (tape === undefined) heap.release(mark);
    }
    return x;
  }
}
