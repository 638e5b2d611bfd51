import { blockSize, type Heap } from '../numeric/heap.js';
import { attentionWidths, headWidthOf, keyValueHeadsOf, type ModelShape } from './shapes.js';

const SMALLEST = 64;

/** Floats a sequence needs for each of its positions. */
export const floatsPerPosition = (shape: ModelShape): number => 2 * shape.layers * attentionWidths(shape).keys;

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
    this.#headWidth = headWidthOf(shape);
    // Blocks come in powers of two: use all of it.
    const wanted = (Math.max(capacity, SMALLEST) + 3) & ~3;
    const size = blockSize(floatsPerPosition(shape) * wanted);
    this.#capacity = Math.floor(size / floatsPerPosition(shape)) & ~3;
    this.#block = heap.alloc(size);
  }

  get capacity(): number {
    return this.#capacity;
  }

  /** Where the keys of a layer's first head are; those of the next head are {@link headStride} floats on. */
  keys(layer: number): number {
    return this.#block + layer * keyValueHeadsOf(this.#shape) * this.headStride;
  }

  values(layer: number): number {
    return this.keys(layer) + this.#headWidth * this.#capacity;
  }

  get headStride(): number {
    return 2 * this.#headWidth * this.#capacity;
  }

  /** Makes room for `length` positions, moving the existing ones. */
  reserve(length: number): void {
    if (length <= this.#capacity) return;
    const grown = new KvCache(this.#heap, this.#shape, length);
    this.#copyTo(grown, this.length);
    this.#heap.free(this.#block);
    this.#block = grown.#block;
    this.#capacity = grown.#capacity;
  }

  /** A copy of the first `length` positions, with room for `capacity` at least. */
  fork(capacity: number, length = this.length): KvCache {
    const copy = new KvCache(this.#heap, this.#shape, Math.max(capacity, length));
    this.#copyTo(copy, length);
    copy.length = length;
    return copy;
  }

  dispose(): void {
    this.#heap.free(this.#block);
  }

  #copyTo(target: KvCache, length: number): void {
    const f = this.#heap.floats;
    const heads = this.#shape.layers * keyValueHeadsOf(this.#shape);
    for (let head = 0; head < heads; head++) {
      const [from, to] = [this.keys(0) + head * this.headStride, target.keys(0) + head * target.headStride];
      for (let i = 0; i < this.#headWidth; i++) {
        const row = from + i * this.#capacity;
        f.copyWithin(to + i * target.#capacity, row, row + length);
      }
      const values = from + this.#headWidth * this.#capacity;
      f.copyWithin(to + this.#headWidth * target.#capacity, values, values + length * this.#headWidth);
    }
  }
}
