import { blockSize, type Heap } from '../numeric/heap.js';
import type { ModelShape } from './shapes.js';

const SMALLEST = 64;

/** Floats a sequence needs for each of its positions. */
export const floatsPerPosition = (shape: ModelShape): number => 2 * shape.layers * shape.width;

/** Keys and values of one sequence: for each layer and head, keys transposed [headWidth, capacity], values [capacity, headWidth]. */
export class KvCache {
  /** Positions filled. */
  length = 0;
  readonly #heap: Heap;
  readonly #shape: ModelShape;
  readonly #headWidth: number;
  #capacity: number;
  #block: number;

  constructor(heap: Heap, shape: ModelShape, capacity: number) {
    this.#heap = heap;
    this.#shape = shape;
    this.#headWidth = shape.width / shape.heads;
    // Blocks come in powers of two: use all of it.
    const wanted = (Math.max(capacity, SMALLEST) + 3) & ~3;
    const size = blockSize(floatsPerPosition(shape) * wanted);
    this.#capacity = Math.floor(size / floatsPerPosition(shape)) & ~3;
    this.#block = heap.alloc(size);
  }

  get capacity(): number {
    return this.#capacity;
  }

  keys(layer: number, head: number): number {
    return this.#block + (layer * this.#shape.heads + head) * 2 * this.#headWidth * this.#capacity;
  }

  values(layer: number, head: number): number {
    return this.keys(layer, head) + this.#headWidth * this.#capacity;
  }

  /** Makes room for `length` positions, moving the existing ones. */
  reserve(length: number): void {
    if (length <= this.#capacity) return;
    const grown = new KvCache(this.#heap, this.#shape, length);
    this.#copyTo(grown);
    this.#heap.free(this.#block);
    this.#block = grown.#block;
    this.#capacity = grown.#capacity;
  }

  /** A copy with room for `capacity` positions at least. */
  fork(capacity: number): KvCache {
    const copy = new KvCache(this.#heap, this.#shape, Math.max(capacity, this.length));
    this.#copyTo(copy);
    copy.length = this.length;
    return copy;
  }

  dispose(): void {
    this.#heap.free(this.#block);
  }

  #copyTo(target: KvCache): void {
    const f = this.#heap.floats;
    for (let layer = 0; layer < this.#shape.layers; layer++) {
      for (let head = 0; head < this.#shape.heads; head++) {
        const keys = this.keys(layer, head);
        for (let i = 0; i < this.#headWidth; i++) {
          const row = keys + i * this.#capacity;
          f.copyWithin(target.keys(layer, head) + i * target.#capacity, row, row + this.length);
        }
        const values = this.values(layer, head);
        f.copyWithin(target.values(layer, head), values, values + this.length * this.#headWidth);
      }
    }
  }
}
