import { EngineMemoryError } from '../errors.js';
import { Lane } from './lane.js';
import { runOp, type OpArguments, type OpName } from './ops/index.js';
import { createTeam, lead, type TeamSetup } from './team.js';
import { createMemory } from './wasm/runtime.js';
import { MAX_PAGES } from './wasm/assembler.js';

const PAGE_FLOATS = 16_384;
/** What a heap may grow to if nothing else is said: 2 GiB. */
const DEFAULT_BYTES = 2 ** 31;
const SMALLEST_GROWTH = 64;
const SMALLEST_BLOCK = 64;
const LARGE_BLOCK = 1 << 20;
const REGION_FLOATS = 1 << 18;
const LARGEST_REGION = 1 << 22;

/** The floats a block of `size` really has: the next power of two, or, of large ones, the next quarter of the way to it. */
export function blockSize(size: number): number {
  let rounded = SMALLEST_BLOCK;
  while (rounded < size) rounded *= 2;
  if (rounded <= LARGE_BLOCK) return rounded;
  const step = rounded / 8;
  return Math.ceil(size / step) * step;
}

export interface HeapOptions {
  /** Threads that share the work; {@link Heap.team} is what the others are started with. Default 1. */
  readonly threads?: number | undefined;
  /** The most it may grow to. Default 2 GiB, at most 4 GiB. */
  readonly memoryBytes?: number | undefined;
}

/** How the work of an op is split. */
export interface Split {
  /** Items that can be done apart. */
  readonly count: number;
  /** Floats of scratch memory that each thread needs. Default 0. */
  readonly scratch?: number | undefined;
  /** Whether this thread does all of it. Default false. */
  readonly alone?: boolean | undefined;
}

const mebibytes = (floats: number): number => Math.ceil((4 * floats) / 2 ** 20);

/**
 * The floats the kernels work on: one WebAssembly memory, addressed by float offset. `alloc`/`free` hand out blocks of
 * few sizes that are used again, `scratch` bumps through regions that are kept: memory grows to what the
 * largest request needs and stays there. `run` splits an op among the threads.
 */
export class Heap extends Lane {
  readonly team: TeamSetup;
  readonly #maxFloats: number;
  readonly #free = new Map<number, number[]>();
  readonly #sizes = new Map<number, number>();
  readonly #regions: { readonly start: number; readonly size: number }[] = [];
  #end = SMALLEST_BLOCK;
  #region = 0;
  #used = 0;

  constructor({ threads = 1, memoryBytes = DEFAULT_BYTES }: HeapOptions = {}) {
    super(createMemory(1, MAX_PAGES));
    this.team = createTeam(this.memory, threads);
    this.#maxFloats = PAGE_FLOATS * Math.min(MAX_PAGES, Math.floor(memoryBytes / (4 * PAGE_FLOATS)));
  }

  /** Does an op, split among the threads. */
  run<N extends OpName>(op: N, { count, scratch = 0, alone = false }: Split, ...args: OpArguments<N>): void {
    const mark = this.mark();
    const { threads } = this.team;
    if (threads === 1 || count === 1 || alone) {
      runOp(op, this, 0, count, scratch === 0 ? 0 : this.scratch(scratch), args);
    } else {
      lead(this.team, this, op, count, scratch === 0 ? 0 : this.scratch(threads * scratch), scratch, args);
    }
    this.release(mark);
  }

  /** Bytes of memory held. */
  get bytes(): number {
    return 4 * this.floats.length;
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

  /** A block of exactly `size` floats that is kept forever: the weights of a model. */
  keep(size: number): number {
    const start = this.#end;
    const end = start + ((size + 3) & ~3);
    this.#growTo(end);
    this.#end = end;
    return start;
  }

  /** Throws an {@link EngineMemoryError} if `floats` cannot be had beside those in use. Allocates nothing. */
  require(floats: number, what: string): void {
    let unused = this.#regions.reduce((sum, { size }) => sum + size, 0);
    for (const [size, blocks] of this.#free) unused += size * blocks.length;
    const used = this.#end - unused;
    if (used + floats <= this.#maxFloats) return;
    throw new EngineMemoryError(
      `${what} needs ${mebibytes(floats)} MiB of memory beside the ${mebibytes(used)} MiB in use; ` +
        `the limit is ${mebibytes(this.#maxFloats)} MiB`,
    );
  }

  /** @throws EngineMemoryError if the memory cannot grow that far; its content stays unchanged. */
  #growTo(end: number): void {
    const missing = Math.ceil((end - this.floats.length) / PAGE_FLOATS);
    if (missing <= 0) return;
    const left = (this.#maxFloats - this.floats.length) / PAGE_FLOATS;
    try {
      if (missing > left) throw new RangeError(`the limit is ${mebibytes(this.#maxFloats)} MiB`);
      this.grow(Math.max(missing, Math.min(SMALLEST_GROWTH, left)));
    } catch (cause) {
      throw new EngineMemoryError(
        `the engine is out of memory: it has ${mebibytes(this.floats.length)} MiB and needs ${mebibytes(end)} MiB. ` +
          'Use a smaller rank, shorter data or fewer samples at once',
        { cause },
      );
    }
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
        // Larger ones for larger models, so that little is left over at their ends.
        const total = this.#regions.reduce((sum, { size: each }) => sum + each, 0);
        const wanted = blockSize(Math.max(size, REGION_FLOATS, Math.min(total, LARGEST_REGION)));
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

  /** log Σ exp of each of some rows of `width` floats, a multiple of 4. */
  logSumExp(rows: number, x: number, width: number): Float64Array {
    const mark = this.mark();
    const pairs = this.scratch(2 * rows);
    this.run('sumExponentials', { count: rows }, width, x, pairs);
    const f = this.floats;
    this.release(mark);
    return Float64Array.from({ length: rows }, (_, row) => f[pairs + 2 * row]! + Math.log(f[pairs + 2 * row + 1]!));
  }
}
