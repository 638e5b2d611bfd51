import { EngineMemoryError } from '../errors.js';
import { createKernels, type Kernels } from './kernels.js';
import { createMemory } from './wasm/runtime.js';

const PAGE_FLOATS = 16_384;
const MAX_PAGES = 32_768;
const SMALLEST_GROWTH = 64;
const SMALLEST_BLOCK = 64;
const REGION_FLOATS = 1 << 18;
/** Where kernels leave a pair of numbers: the block before the first one handed out. */
const RESULT = 0;

/** The floats a block of `size` really has: the next power of two. */
export function blockSize(size: number): number {
  let rounded = SMALLEST_BLOCK;
  while (rounded < size) rounded *= 2;
  return rounded;
}

/**
 * The floats the kernels work on: one WebAssembly memory, addressed by float offset. `alloc`/`free` hand out blocks in
 * power-of-two sizes that are used again, `scratch` bumps through regions that are kept: memory grows to what the
 * largest request needs and stays there.
 */
export class Heap {
  /** All floats. Read it again after any allocation: growing the memory replaces the array. */
  floats: Float32Array;
  readonly kernels: Kernels;
  readonly #memory = createMemory(1, MAX_PAGES);
  readonly #free = new Map<number, number[]>();
  readonly #sizes = new Map<number, number>();
  readonly #regions: { readonly start: number; readonly size: number }[] = [];
  #end = SMALLEST_BLOCK;
  #region = 0;
  #used = 0;

  constructor() {
    this.kernels = createKernels(this.#memory);
    this.floats = new Float32Array(this.#memory.buffer);
  }

  /** Bytes of memory held. */
  get bytes(): number {
    return this.#memory.buffer.byteLength;
  }

  /** A block of at least `size` floats, contents undefined. */
  alloc(size: number): number {
    const rounded = blockSize(size);
    const reused = this.#free.get(rounded)?.pop();
    const start = reused ?? this.#end;
    if (reused === undefined) {
      this.#growTo(start + rounded);
      this.#end = start + rounded;
    }
    this.#sizes.set(start, rounded);
    return start;
  }

  /** @throws EngineMemoryError if the memory cannot grow that far; its content stays unchanged. */
  #growTo(end: number): void {
    const missing = Math.ceil((end - this.floats.length) / PAGE_FLOATS);
    if (missing <= 0) return;
    const left = MAX_PAGES - this.floats.length / PAGE_FLOATS;
    try {
      this.#memory.grow(Math.max(missing, Math.min(SMALLEST_GROWTH, left)));
    } catch (cause) {
      const mebibytes = (floats: number) => Math.ceil((4 * floats) / 2 ** 20);
      throw new EngineMemoryError(
        `the engine is out of memory: it has ${mebibytes(this.floats.length)} MiB and needs ${mebibytes(end)} MiB. ` +
          'Use a smaller rank, shorter data or fewer samples at once',
        { cause },
      );
    }
    this.floats = new Float32Array(this.#memory.buffer);
  }

  free(start: number): void {
    const size = this.#sizes.get(start);
    if (size === undefined) throw new Error(`no block at ${start}`);
    this.#sizes.delete(start);
    const list = this.#free.get(size);
    if (list === undefined) this.#free.set(size, [start]);
    else list.push(start);
  }

  /** Floats that live until {@link release}; contents undefined. */
  scratch(size: number): number {
    size = (size + 3) & ~3;
    for (;;) {
      let region = this.#regions[this.#region];
      if (region === undefined) {
        const wanted = Math.max(size, REGION_FLOATS);
        region = { start: this.alloc(wanted), size: wanted };
        this.#regions.push(region);
      }
      if (this.#used + size <= region.size) {
        const start = region.start + this.#used;
        this.#used += size;
        return start;
      }
      this.#region++;
      this.#used = 0;
    }
  }

  mark(): { readonly region: number; readonly used: number } {
    return { region: this.#region, used: this.#used };
  }

  /** Gives back all scratch taken since `mark`. */
  release(mark: { readonly region: number; readonly used: number }): void {
    this.#region = mark.region;
    this.#used = mark.used;
  }

  /** Copies an array into a new block. */
  store(values: Float32Array): number {
    const start = this.alloc(values.length);
    this.floats.set(values, start);
    return start;
  }

  /** log Σ exp of a row of `count` floats, a multiple of 4. */
  logSumExp(row: number, count: number): number {
    this.kernels.sumExponentials(row, count, RESULT);
    return this.floats[RESULT]! + Math.log(this.floats[RESULT + 1]!);
  }
}
