/** Something with a deadline, by the machine's monotonic clock. */
export interface Due {
  /** The deadline. It may change while it is watched. */
  readonly dueMs: number;
  late(): void;
}

/** The shortest time between two checks, so that deadlines close to each other share one. */
const SHORTEST_WAIT_MS = 20;
const LONGEST_WAIT_MS = 60_000;

/**
 * Watches many deadlines with one timer: with thousands of requests in flight, one timer each would be slow, and nearly all
 * of them end in time.
 */
export class Deadlines {
  readonly #watched = new Set<Due>();
  #timer: NodeJS.Timeout | undefined;
  #wakesMs = Infinity;

  watch(due: Due): void {
    this.#watched.add(due);
    if (due.dueMs < this.#wakesMs) this.#wakeAt(due.dueMs);
  }

  forget(due: Due): void {
    this.#watched.delete(due);
  }

  /** Stops the timer. Watching something starts it again. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#wakesMs = Infinity;
  }

  #wakeAt(ms: number): void {
    clearTimeout(this.#timer);
    this.#wakesMs = ms;
    const waitMs = Math.min(Math.max(ms - performance.now(), SHORTEST_WAIT_MS), LONGEST_WAIT_MS);
    // Sockets keep the process alive while requests are in flight; this timer does not have to.
    this.#timer = setTimeout(() => this.#look(), waitMs).unref();
  }

  #look(): void {
    this.#wakesMs = Infinity;
    const nowMs = performance.now();
    let nextMs = Infinity;
    for (const due of [...this.#watched]) {
      if (due.dueMs <= nowMs) {
        this.#watched.delete(due);
        due.late();
      } else if (due.dueMs < nextMs) nextMs = due.dueMs;
    }
    if (nextMs < this.#wakesMs) this.#wakeAt(nextMs);
  }
}
