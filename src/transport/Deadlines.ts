/** Something that must be over by a time, by the machine's monotonic clock. */
export interface Due {
  /** When it is late; it may move while it is watched. */
  readonly dueMs: number;
  late(): void;
}

/** The least time between two looks: many that are late at nearly the same time are looked at together. */
const SHORTEST_WAIT_MS = 20;
const LONGEST_WAIT_MS = 60_000;

/**
 * Watches many deadlines with one timer: thousands of requests are in flight, nearly all of them end in time, and a timer
 * for each would cost more than the rest of the watching.
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

  /** Stops looking; to watch something starts it again. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#wakesMs = Infinity;
  }

  #wakeAt(ms: number): void {
    clearTimeout(this.#timer);
    this.#wakesMs = ms;
    const waitMs = Math.min(Math.max(ms - performance.now(), SHORTEST_WAIT_MS), LONGEST_WAIT_MS);
    // Requests keep the process alive by their sockets; this timer need not.
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
