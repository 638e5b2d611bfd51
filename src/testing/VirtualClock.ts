import { VirtualAction, VirtualTimeScheduler, type Observable } from 'rxjs';

const A_YEAR_MS = 365 * 24 * 3_600_000;

/**
 * A clock that moves only when told to: hours of waiting pass in no time, and in the same way every time.
 *
 * Give it to a client as its `scheduler`. Everything the client waits for (a backoff, a billing pause of an hour, a
 * heartbeat) then happens when the clock is advanced, in order, before the call that advances it returns. Milliseconds,
 * starting at 0. For marble diagrams use RxJS's `TestScheduler` in its place; {@link fakeTransport} takes either.
 *
 * ```ts
 * const clock = new VirtualClock();
 * const fake = fakeTransport({ scheduler: clock, workMs: 10_000 });
 * const service = new ServiceClient(fake.clientOptions);
 * const trainer = clock.resolve(service.createLoraTrainingClient({ baseModel: 'any' }));
 * clock.resolve(trainer.optimStep());
 * clock.now(); // 20000: the model took ten seconds, and so did the step
 * ```
 */
export class VirtualClock extends VirtualTimeScheduler {
  constructor() {
    super(VirtualAction, 0);
  }

  /** Runs what is due up to and including the given time, then stands there. @throws RangeError for a time in the past. */
  advanceTo(timeMs: number): void {
    if (!(timeMs >= this.frame)) throw new RangeError(`the clock stands at ${this.frame} ms, past ${timeMs} ms`);
    this.maxFrames = timeMs;
    this.flush();
    this.frame = timeMs;
  }

  /** Runs what is due within the given time from now. */
  advanceBy(durationMs: number): void {
    this.advanceTo(this.frame + durationMs);
  }

  /**
   * Lets time pass until the future has its result and gives it; the clock then stands at that moment.
   *
   * @throws what the future fails with; an Error when nothing is left to happen, or a virtual year has passed, and the
   * future has still not settled.
   */
  resolve<A>(future: Observable<A>): A {
    const outcome = this.#settle(future);
    if ('error' in outcome) throw outcome.error;
    return outcome.value;
  }

  /** The opposite of {@link VirtualClock.resolve}: gives what the future fails with. @throws an Error when it succeeds. */
  reject(future: Observable<unknown>): unknown {
    const outcome = this.#settle(future);
    if ('error' in outcome) return outcome.error;
    throw new Error(`the future was to fail, and did not: it settled at ${this.frame} ms`);
  }

  #settle<A>(future: Observable<A>): { readonly value: A } | { readonly error: unknown } {
    let outcome: { readonly value: A } | { readonly error: unknown } | undefined;
    let last: { readonly value: A } | undefined;
    const subscription = future.subscribe({
      next: (value) => (last = { value }),
      error: (error: unknown) => (outcome = { error }),
      complete: () => (outcome = last ?? { error: new Error('the future completed without a result') }),
    });
    const untilMs = this.frame + A_YEAR_MS;
    while (outcome === undefined) {
      // Moment by moment, so that the clock stops where the future settles.
      const next = this.actions[0];
      if (next === undefined || next.delay > untilMs) break;
      this.advanceTo(Math.max(next.delay, this.frame));
    }
    subscription.unsubscribe();
    if (outcome === undefined)
      throw new Error(`at ${this.frame} ms the future has not settled, and nothing will settle it`);
    return outcome;
  }
}
