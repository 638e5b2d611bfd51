import type { BaseModel } from './baseModel.js';
import type { Heap } from '../numeric/heap.js';
import { attendBackwardScratch, attendScratch, RUN } from '../numeric/ops/attention.js';
import type { KvCache } from './kvCache.js';
import { attentionWidths, headWidthOf, keyValueHeadsOf, NORM_EPS } from './shapes.js';

/** Neighbouring rows of one sequence; without a cache a sequence from its start, of which nothing is kept. */
export interface Run {
  readonly row: number;
  readonly rows: number;
  readonly cache?: KvCache | undefined;
}

/** Queries, keys and values of a layer's rows; where heads are normed, also as they were before. */
export interface Heads {
  readonly q: number;
  readonly k: number;
  readonly v: number;
  readonly rawQ: number;
  readonly rawK: number;
  readonly inverseQ: number;
  readonly inverseK: number;
}

/** Takes scratch memory for the heads of some rows. The products write to the raw ones. */
export function takeHeads(heap: Heap, { shape, headNorms }: BaseModel, rows: number): Heads {
  const { queries, keys } = attentionWidths(shape);
  const [q, k, v] = [heap.scratch(rows * queries), heap.scratch(rows * keys), heap.scratch(rows * keys)];
  if (headNorms.length === 0) return { q, k, v, rawQ: q, rawK: k, inverseQ: -1, inverseK: -1 };
  const [rawQ, rawK] = [heap.scratch(rows * queries), heap.scratch(rows * keys)];
  const [inverseQ, inverseK] = [heap.scratch(rows * shape.heads), heap.scratch(rows * keyValueHeadsOf(shape))];
  return { q, k, v, rawQ, rawK, inverseQ, inverseK };
}

/** Positions of the rows, for {@link attend}. */
export function positionsOf(heap: Heap, runs: readonly Run[], rows: number): number {
  const positions = heap.scratch(rows);
  for (const run of runs) {
    for (let i = 0; i < run.rows; i++) heap.floats[positions + run.row + i] = (run.cache?.length ?? 0) + i;
  }
  return positions;
}

/** Norms the heads where the model does, rotates them, and attends. Caches keep the keys and values. */
export function attend(
  heap: Heap,
  base: BaseModel,
  layer: number,
  runs: readonly Run[],
  positions: number,
  heads: Heads,
  rows: number,
  out: number,
): void {
  const { shape } = base;
  const [headWidth, shared] = [headWidthOf(shape), keyValueHeadsOf(shape)];
  const { queries, keys: keysWidth } = attentionWidths(shape);
  const { q, k, v, rawQ, rawK, inverseQ, inverseK } = heads;
  const mark = heap.mark();
  const eps = shape.normEps ?? NORM_EPS;
  if (base.headNorms.length > 0) {
    const [gainQ, gainK] = [base.headNorms[2 * layer]!, base.headNorms[2 * layer + 1]!];
    heap.run('norm', { count: rows * shape.heads }, headWidth, eps, rawQ, gainQ, q, inverseQ);
    heap.run('norm', { count: rows * shared }, headWidth, eps, rawK, gainK, k, inverseK);
  }
  heap.run('rope', { count: rows }, q, queries, headWidth, positions, base.rope, 1);
  heap.run('rope', { count: rows }, k, keysWidth, headWidth, positions, base.rope, 1);

  const table = heap.scratch(RUN.size * runs.length);
  let [longest, most] = [0, 0];
  runs.forEach(({ row, rows: count, cache }, index) => {
    const start = cache?.length ?? 0;
    const padded = (count + 3) & ~3;
    const keep =
      cache === undefined
        ? [heap.scratch(keysWidth * padded), padded, headWidth * padded, v + row * keysWidth, keysWidth, headWidth]
        : [cache.keys(layer), cache.capacity, cache.headStride, cache.values(layer), headWidth, cache.headStride];
    heap.integers.set([row, count, start, ...keep], table + RUN.size * index);
    longest = Math.max(longest, start + count);
    most = Math.max(most, count);
  });
  heap.run('remember', { count: runs.length * shared }, table, shared, headWidth, k, v);
  const split = { count: runs.length * shape.heads, scratch: attendScratch(most, longest) };
  heap.run('attend', split, table, shape.heads, shape.heads / shared, headWidth, q, out);
  heap.release(mark);
}

/** Gradients of the raw queries and keys and of the values of one sequence, from that of the output. */
export function attendBackward(
  heap: Heap,
  base: BaseModel,
  layer: number,
  positions: number,
  heads: Heads,
  rows: number,
  dOut: number,
): { readonly dq: number; readonly dk: number; readonly dv: number } {
  const { shape } = base;
  const [headWidth, shared] = [headWidthOf(shape), keyValueHeadsOf(shape)];
  const { queries, keys: keysWidth } = attentionWidths(shape);
  const [dq, dk, dv] = [heap.scratch(rows * queries), heap.scratch(rows * keysWidth), heap.scratch(rows * keysWidth)];
  const split = { count: shared, scratch: attendBackwardScratch(rows, headWidth) };
  const { q, k, v, rawQ, rawK, inverseQ, inverseK } = heads;
  heap.run('attendBackward', split, rows, shape.heads, shape.heads / shared, headWidth, q, k, v, dOut, dq, dk, dv);
  heap.run('rope', { count: rows }, dq, queries, headWidth, positions, base.rope, -1);
  heap.run('rope', { count: rows }, dk, keysWidth, headWidth, positions, base.rope, -1);
  if (base.headNorms.length === 0) return { dq, dk, dv };
  const back = (count: number, raw: number, gain: number, inverse: number, dNormed: number): number => {
    const dRaw = heap.scratch(count * headWidth);
    heap.floats.fill(0, dRaw, dRaw + count * headWidth);
    heap.run('normBackward', { count }, headWidth, raw, gain, inverse, dNormed, dRaw, -1);
    return dRaw;
  };
  return {
    dq: back(rows * shape.heads, rawQ, base.headNorms[2 * layer]!, inverseQ, dq),
    dk: back(rows * shared, rawK, base.headNorms[2 * layer + 1]!, inverseK, dk),
    dv,
  };
}
