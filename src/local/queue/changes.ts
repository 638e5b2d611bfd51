/** Wakes callers that wait for a change, with a time limit. */
export class Changes {
  readonly #waiters = new Set<() => void>();

  /** Wakes every waiter. */
  notify(): void {
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const wake of waiters) wake();
  }

  /** Resolves at the next {@link notify}, after `timeoutMs`, or when `signal` aborts, whichever is first. */
  next(timeoutMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || timeoutMs <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#waiters.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, timeoutMs);
      timer.unref();
      this.#waiters.add(done);
      signal.addEventListener('abort', done);
    });
  }
}
