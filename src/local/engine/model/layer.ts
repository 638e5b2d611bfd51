import type { Steps } from '../thread/breathe.js';
import { attend, takeHeads, type Heads, type Run } from './attention.js';
import type { BaseModel } from './baseModel.js';
import type { Heap } from '../numeric/heap.js';
import { linearForward } from './linear.js';
import type { ResidentAdapter } from './residentAdapter.js';
import { attentionWidths, LAYER_LINEARS, NORM_EPS } from './shapes.js';

export const [Q, K, V, O, GATE, UP, DOWN] = [0, 1, 2, 3, 4, 5, 6] as const;
export const PER_LAYER = LAYER_LINEARS.length;

/** What all layers of a pass share. */
export interface Pass {
  readonly heap: Heap;
  readonly base: BaseModel;
  readonly rows: number;
  readonly adapter: ResidentAdapter | undefined;
  readonly runs: readonly Run[];
  /** The position of each row, as floats in the heap. */
  readonly positions: number;
}

/** What a layer leaves behind for the backward pass, as offsets. What is cheap to make again is not among it. */
export interface LayerTape {
  readonly inverse: number;
  readonly heads: Heads;
  readonly attended: number;
  readonly middle: number;
  readonly inverse2: number;
  readonly gate: number;
  readonly up: number;
  /** x·(scale·Aᵀ) of each adapted matrix, or -1. */
  readonly low: readonly number[];
}

/** The rows of the embedding that belong to the tokens. */
export function embed({ heap, base }: Pass, tokens: Int32Array): number {
  const { width } = base.shape;
  const { weight, half } = base.embedding;
  const x = heap.scratch(tokens.length * width);
  const { floats, integers } = heap;
  const halves = half ? new Uint16Array(floats.buffer) : undefined;
  tokens.forEach((token, row) => {
    const [from, to] = [token * width, x + row * width];
    if (halves === undefined) floats.copyWithin(to, weight + from, weight + from + width);
    else for (let i = 0; i < width; i++) integers[to + i] = halves[2 * weight + from + i]! << 16;
  });
  return x;
}

/** The input of a layer's attention. */
export function firstNorm({ heap, base, rows }: Pass, layer: number, x: number, inverse: number): number {
  const { width, normEps = NORM_EPS } = base.shape;
  const normed = heap.scratch(rows * width);
  heap.run('norm', { count: rows }, width, normEps, x, base.norms[2 * layer]!, normed, inverse);
  return normed;
}

/** The input of a layer's feed-forward part. */
export function secondNorm({ heap, base, rows }: Pass, layer: number, middle: number, inverse: number): number {
  const { width, normEps = NORM_EPS } = base.shape;
  const normed = heap.scratch(rows * width);
  heap.run('norm', { count: rows }, width, normEps, middle, base.norms[2 * layer + 1]!, normed, inverse);
  return normed;
}

/** The product of gate and up. */
export function gatedUnit({ heap, base, rows }: Pass, gate: number, up: number): number {
  const { hidden } = base.shape;
  const gated = heap.scratch(rows * hidden);
  heap.run('swiglu', { count: rows }, hidden, gate, up, gated);
  return gated;
}

/** One layer: `next` = x + attention + feed-forward. `next` may be x itself where nothing needs x any more. */
export function* forwardLayer(pass: Pass, layer: number, x: number, next: number): Steps<LayerTape> {
  const { heap, base, rows, adapter } = pass;
  const { width, hidden } = base.shape;
  const low = new Array<number>(PER_LAYER).fill(-1);
  const run = (which: number, input: number, output: number, accumulate: boolean) => {
    low[which] = linearForward(heap, base, layer * PER_LAYER + which, adapter, rows, input, output, accumulate);
  };
  const copy = (from: number, to: number) => {
    if (from !== to) heap.floats.copyWithin(to, from, from + rows * width);
  };
  const inverse = heap.scratch(rows);
  const heads = takeHeads(heap, base, rows);
  const attended = heap.scratch(rows * attentionWidths(base.shape).queries);
  const middle = next === x ? x : heap.scratch(rows * width);
  const inverse2 = heap.scratch(rows);
  const [gate, up] = [heap.scratch(rows * hidden), heap.scratch(rows * hidden)];

  const normed = firstNorm(pass, layer, x, inverse);
  run(Q, normed, heads.rawQ, false);
  yield;
  run(K, normed, heads.rawK, false);
  yield;
  run(V, normed, heads.v, false);
  yield;
  attend(heap, base, layer, pass.runs, pass.positions, heads, rows, attended);
  yield;
  copy(x, middle);
  run(O, attended, middle, true);
  const normed2 = secondNorm(pass, layer, middle, inverse2);
  run(GATE, normed2, gate, false);
  yield;
  run(UP, normed2, up, false);
  yield;
  const gated = gatedUnit(pass, gate, up);
  copy(middle, next);
  run(DOWN, gated, next, true);
  yield;
  return { inverse, heads, attended, middle, inverse2, gate, up, low };
}
