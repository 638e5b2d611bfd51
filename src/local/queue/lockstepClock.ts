import { toFailure } from './failure.js';
import type { Lane, Later, Operation } from './lane.js';

export interface LockstepClockOptions {
  /** Length of a cycle; 0 runs work as soon as it arrives, Infinity waits for {@link LockstepClock.step}. */
  readonly clockMs: number;
  readonly now: () => number;
  readonly onRun?: (operation: Operation, cycle: number, startedAt: number, endedAt: number) => void;
}

/**
 * Runs the work of all models in cycles. Work accepted during a cycle runs at its end: operations of one model that were
 * queued together run in one cycle, one after the other, up to a second optimizer step, which waits for the next. A
 * client that keeps the next step queued therefore needs one cycle per step; one that waits for results needs two. Without a cycle
 * length, work that arrives together is a cycle. A model still busy with an earlier cycle takes part in the next one after it is done.
 */
export class LockstepClock {
  readonly #waiting = new Set<Lane>();
  readonly #epoch: number;
  #clockMs: number;
  #cycle = 0;
  #paused = false;
  #closed = false;
  #cancelTimer: (() => void) | undefined;

  constructor(private readonly options: LockstepClockOptions) {
    this.#clockMs = options.clockMs;
    this.#epoch = options.now();
  }

  get clockMs(): number {
    return this.#clockMs;
  }

  set clockMs(clockMs: number) {
    if (!(clockMs >= 0)) throw new RangeError(`clockMs must be ≥ 0, got ${clockMs}`);
    this.#clockMs = clockMs;
    this.#cancelTimer?.();
    this.#schedule();
  }

  /** Starts a cycle now, with what has arrived. Resolves when its work has run. */
  async step(): Promise<void> {
    this.#cancelTimer?.();
    if (this.#paused || this.#closed) return;
    this.#cycle++;
    await this.#startCycle();
    this.#schedule();
  }

  readonly wake = (lane: Lane): void => {
    this.#waiting.add(lane);
    this.#schedule();
  };

  /** Starts no further cycle until {@link resume}. */
  pause(): void {
    this.#paused = true;
    this.#cancelTimer?.();
  }

  resume(): void {
    this.#paused = false;
    this.#schedule();
  }

  close(): void {
    this.#closed = true;
    this.#cancelTimer?.();
  }

  #schedule(): void {
    if (this.#paused || this.#closed || this.#cancelTimer !== undefined || this.#waiting.size === 0) return;
    const start = (cycle: number) => {
      this.#cancelTimer = undefined;
      if ([...this.#waiting].every((lane) => lane.running)) return;
      this.#cycle = cycle;
      void this.#startCycle();
    };
    if (this.#clockMs === 0) {
      const immediate = setImmediate(() => start(this.#cycle + 1));
      this.#setTimer(() => clearImmediate(immediate));
      return;
    }
    if (this.#clockMs === Infinity) return;
    const elapsed = this.options.now() - this.#epoch;
    const boundary = Math.floor(elapsed / this.#clockMs) + 1;
    const timer = setTimeout(() => start(Math.max(boundary, this.#cycle + 1)), boundary * this.#clockMs - elapsed);
    this.#setTimer(() => clearTimeout(timer));
  }

  #setTimer(cancel: () => void): void {
    this.#cancelTimer = () => {
      cancel();
      this.#cancelTimer = undefined;
    };
  }

  async #startCycle(): Promise<void> {
    const lanes = [...this.#waiting].filter((lane) => !lane.running);
    for (const lane of lanes) this.#waiting.delete(lane);
    await Promise.all(lanes.map((lane) => this.#run(lane, lane.takeCycle(), this.#cycle)));
  }

  async #run(lane: Lane, operations: readonly Operation[], cycle: number): Promise<void> {
    lane.running = true;
    for (const operation of operations) {
      const startedAt = this.options.now();
      try {
        const ran = await operation.run(cycle);
        if (ran.type === 'later') void settle(operation, ran.result);
        else operation.future.resolve(ran);
      } catch (error) {
        operation.future.reject(toFailure(error));
      }
      this.options.onRun?.(operation, cycle, startedAt, this.options.now());
    }
    lane.running = false;
    if (lane.hasReady) this.wake(lane);
  }
}

async function settle({ future }: Operation, result: Later['result']): Promise<void> {
  try {
    future.resolve(await result);
  } catch (error) {
    future.reject(toFailure(error));
  }
}
