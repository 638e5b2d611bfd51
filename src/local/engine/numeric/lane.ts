import { createKernels, type Kernels } from './kernels.js';
import type { WasmMemory } from './wasm/runtime.js';

/** One thread's view of the shared memory, addressed by float offset, with its kernels. */
export class Lane {
  /** All floats. Read it again after any allocation: growing the memory replaces the array. */
  floats: Float32Array;
  /** The same memory as integers, for tables of offsets: float32 has not enough digits for them. */
  integers: Int32Array;
  readonly kernels: Kernels;
  protected readonly memory: WasmMemory;

  constructor(memory: WasmMemory) {
    this.memory = memory;
    this.kernels = createKernels(memory);
    this.floats = new Float32Array(memory.buffer);
    this.integers = new Int32Array(memory.buffer);
  }

  /** Sees the memory as it is after growing by `pages`; another thread may have grown it. */
  protected grow(pages: number): void {
    this.memory.grow(pages);
    this.floats = new Float32Array(this.memory.buffer);
    this.integers = new Int32Array(this.memory.buffer);
  }

  /** Sees what another thread has added. */
  refresh(floats: number): void {
    if (this.floats.length !== floats) this.grow(0);
  }
}
