import type { Steps } from '../thread/breathe.js';
import { rope, softmaxRowBackward, transpose } from '../numeric/elementwise.js';
import type { BaseModel } from './baseModel.js';
import type { Heap } from '../numeric/heap.js';
import type { KvCache } from './kvCache.js';

/** Rows whose scores are held at once. */
const BLOCK = 64;

/** Softmax over the first `count` entries of a row; the rest up to `columns` become 0. */
function causalSoftmax(heap: Heap, row: number, count: number, columns: number, scale: number): void {
  const vectors = (count + 3) & ~3;
  heap.floats.fill(-Infinity, row + count, row + vectors);
  heap.kernels.softmax(row, vectors, scale);
  heap.floats.fill(0, row + vectors, row + columns);
}

/**
 * Causal attention of a whole sequence; rotates q and k in place. With `cache`, keys and values are also left there.
 * A row's result is bit for bit what {@link attendCached} gives: both add up in the order of the positions.
 */
export function* attendSequence(
  heap: Heap,
  base: BaseModel,
  layer: number,
  rows: number,
  q: number,
  k: number,
  v: number,
  out: number,
  cache?: KvCache,
): Steps<void> {
  const { width, heads } = base.shape;
  const headWidth = width / heads;
  const scale = 1 / Math.sqrt(headWidth);
  const padded = (rows + 3) & ~3;
  const mark = heap.mark();
  const keys = heap.scratch(headWidth * padded);
  const scores = heap.scratch(Math.min(BLOCK, rows) * padded);
  for (let row = 0; row < rows; row++) {
    rope(heap.floats, q + row * width, width, row, base.rope, 1);
    rope(heap.floats, k + row * width, width, row, base.rope, 1);
  }
  for (let head = 0; head < heads; head++) {
    const at = head * headWidth;
    transpose(heap.floats, k + at, rows, headWidth, width, keys, padded);
    for (let from = 0; from < rows; from += BLOCK) {
      yield;
      const to = Math.min(rows, from + BLOCK);
      const columns = (to + 3) & ~3;
      heap.kernels.gemm(
        to - from,
        columns,
        headWidth,
        q + from * width + at,
        width,
        1,
        keys,
        padded,
        scores,
        padded,
        false,
      );
      for (let row = from; row < to; row++)
        causalSoftmax(heap, scores + (row - from) * padded, row + 1, columns, scale);
      heap.kernels.gemm(
        to - from,
        headWidth,
        to,
        scores,
        padded,
        1,
        v + at,
        width,
        out + from * width + at,
        width,
        false,
      );
    }
    if (cache !== undefined) {
      // Read after the pauses, in which the memory may have grown.
      const f = heap.floats;
      const cachedKeys = cache.keys(layer, head);
      for (let i = 0; i < headWidth; i++) {
        f.copyWithin(cachedKeys + i * cache.capacity, keys + i * padded, keys + i * padded + rows);
      }
      const cachedValues = cache.values(layer, head);
      for (let row = 0; row < rows; row++) {
        const value = v + row * width + at;
        f.copyWithin(cachedValues + row * headWidth, value, value + headWidth);
      }
    }
  }
  heap.release(mark);
}

/** Gradients of q, k and v (before rotation) from that of the output. The probabilities are computed again. */
export function* attendSequenceBackward(
  heap: Heap,
  base: BaseModel,
  rows: number,
  q: number,
  k: number,
  v: number,
  dOut: number,
  dq: number,
  dk: number,
  dv: number,
): Steps<void> {
  const { width, heads } = base.shape;
  const headWidth = width / heads;
  const scale = 1 / Math.sqrt(headWidth);
  const padded = (rows + 3) & ~3;
  const mark = heap.mark();
  const keys = heap.scratch(headWidth * padded);
  const values = heap.scratch(headWidth * padded);
  const scores = heap.scratch(Math.min(BLOCK, rows) * padded);
  const dScores = heap.scratch(Math.min(BLOCK, rows) * padded);
  heap.floats.fill(0, dk, dk + rows * width);
  heap.floats.fill(0, dv, dv + rows * width);
  for (let head = 0; head < heads; head++) {
    const at = head * headWidth;
    transpose(heap.floats, k + at, rows, headWidth, width, keys, padded);
    transpose(heap.floats, v + at, rows, headWidth, width, values, padded);
    for (let from = 0; from < rows; from += BLOCK) {
      yield;
      const to = Math.min(rows, from + BLOCK);
      const count = to - from;
      const columns = (to + 3) & ~3;
      const qBlock = q + from * width + at;
      const dBlock = dOut + from * width + at;
      heap.kernels.gemm(count, columns, headWidth, qBlock, width, 1, keys, padded, scores, padded, false);
      heap.kernels.gemm(count, columns, headWidth, dBlock, width, 1, values, padded, dScores, padded, false);
      for (let row = 0; row < count; row++) {
        const p = scores + row * padded;
        causalSoftmax(heap, p, from + row + 1, columns, scale);
        softmaxRowBackward(heap.floats, p, dScores + row * padded, from + row + 1, columns, scale);
      }
      heap.kernels.gemm(to, headWidth, count, scores, 1, padded, dBlock, width, dv + at, width, true);
      heap.kernels.gemm(count, headWidth, to, dScores, padded, 1, k + at, width, dq + from * width + at, width, false);
      heap.kernels.gemm(to, headWidth, count, dScores, 1, padded, qBlock, width, dk + at, width, true);
    }
  }
  for (let row = 0; row < rows; row++) {
    rope(heap.floats, dq + row * width, width, row, base.rope, -1);
    rope(heap.floats, dk + row * width, width, row, base.rope, -1);
  }
  heap.release(mark);
}

/** Attention of one new row after what its cache holds; appends the row's key and value. `scores` holds capacity floats. */
export function attendCached(
  heap: Heap,
  base: BaseModel,
  layer: number,
  q: number,
  k: number,
  v: number,
  out: number,
  cache: KvCache,
  scores: number,
): void {
  const { width, heads } = base.shape;
  const headWidth = width / heads;
  const scale = 1 / Math.sqrt(headWidth);
  const position = cache.length;
  const count = position + 1;
  const columns = (count + 3) & ~3;
  const f = heap.floats;
  rope(f, q, width, position, base.rope, 1);
  rope(f, k, width, position, base.rope, 1);
  for (let head = 0; head < heads; head++) {
    const at = head * headWidth;
    const keys = cache.keys(layer, head);
    const values = cache.values(layer, head);
    for (let i = 0; i < headWidth; i++) {
      f[keys + i * cache.capacity + position] = f[k + at + i]!;
      f[values + position * headWidth + i] = f[v + at + i]!;
    }
    heap.kernels.gemm(1, columns, headWidth, q + at, width, 1, keys, cache.capacity, scores, cache.capacity, false);
    causalSoftmax(heap, scores, count, columns, scale);
    heap.kernels.gemm(1, headWidth, count, scores, cache.capacity, 1, values, headWidth, out + at, width, false);
  }
}
