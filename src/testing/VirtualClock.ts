import { Subscription, type Observable, type SchedulerAction, type SchedulerLike } from 'rxjs';

const A_WEEK_MS = 7 * 24 * 3_600_000;

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
export class VirtualClock implements SchedulerLike {
  readonly #alarms = new Alarms();
  #nowMs = 0;
  #set = 0;

  now(): number {
    return this.#nowMs;
  }

  /** Runs work after a delay in virtual milliseconds, as every RxJS scheduler does. */
  schedule<T>(work: (this: SchedulerAction<T>, state?: T) => void, delay = 0, state?: T): Subscription {
    return new ClockAction(work, (action, delayMs, next) => this.#alarm(action, delayMs, next)).schedule(state, delay);
  }

  /** Runs what is due up to and including the given time, then stands there. @throws RangeError for a time in the past. */
  advanceTo(timeMs: number): void {
    if (!(timeMs >= this.#nowMs)) throw new RangeError(`the clock stands at ${this.#nowMs} ms, past ${timeMs} ms`);
    for (let next = this.#alarms.first; next !== undefined && next.atMs <= timeMs; next = this.#alarms.first) {
      this.#alarms.removeFirst();
      this.#nowMs = next.atMs;
      next.ring();
    }
    this.#nowMs = timeMs;
  }

  /** Runs what is due within the given time from now. */
  advanceBy(durationMs: number): void {
    this.advanceTo(this.#nowMs + durationMs);
  }

  /**
   * Lets time pass until the future has its result and gives it; the clock then stands at that moment.
   *
   * @throws what the future fails with; an Error when nothing is left to happen, or a virtual week has passed, and the
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
    throw new Error(`the future was to fail, and did not: it settled at ${this.#nowMs} ms`);
  }

  #settle<A>(future: Observable<A>): { readonly value: A } | { readonly error: unknown } {
    let outcome: { readonly value: A } | { readonly error: unknown } | undefined;
    let last: { readonly value: A } | undefined;
    const subscription = future.subscribe({
      next: (value) => (last = { value }),
      error: (error: unknown) => (outcome = { error }),
      complete: () => (outcome = last ?? { error: new Error('the future completed without a result') }),
    });
    const untilMs = this.#nowMs + A_WEEK_MS;
    while (outcome === undefined) {
      // Moment by moment, so that the clock stops where the future settles.
      const next = this.#alarms.first;
      if (next === undefined || next.atMs > untilMs) break;
      this.advanceTo(next.atMs);
    }
    subscription.unsubscribe();
    if (outcome === undefined)
      throw new Error(`at ${this.#nowMs} ms the future has not settled, and nothing will settle it`);
    return outcome;
  }

  #alarm(action: Subscription, delayMs: number, ring: () => void): void {
    const alarm = { atMs: this.#nowMs + Math.max(0, delayMs), order: this.#set++, action, ring };
    if (Number.isFinite(alarm.atMs)) this.#alarms.add(alarm);
  }
}

/** Work that is due at a time; what it is handed as `this` can put it off again. */
class ClockAction<T> extends Subscription implements SchedulerAction<T> {
  #round = 0;

  constructor(
    private readonly work: (this: SchedulerAction<T>, state?: T) => void,
    private readonly alarm: (action: Subscription, delayMs: number, ring: () => void) => void,
  ) {
    super();
  }

  schedule(state?: T, delay = 0): Subscription {
    if (this.closed) return this;
    const round = ++this.#round;
    this.alarm(this, delay, () => {
      this.work.call(this, state);
      // Work that was not put off again is over.
      if (this.#round === round) this.unsubscribe();
    });
    return this;
  }
}

interface Alarm {
  readonly atMs: number;
  readonly order: number;
  readonly action: Subscription;
  readonly ring: () => void;
}

const FEW_ALARMS = 64;

/** A heap of alarms, the next one on top; those called off stay until they come up, or until they are most of it. */
class Alarms {
  #heap: Alarm[] = [];
  #clearAt = FEW_ALARMS;

  /** The next alarm that still matters. */
  get first(): Alarm | undefined {
    while (this.#heap[0]?.action.closed) this.removeFirst();
    return this.#heap[0];
  }

  add(alarm: Alarm): void {
    if (this.#heap.length >= this.#clearAt) {
      // A sorted list is a heap.
      this.#heap = this.#heap.filter(({ action }) => !action.closed).sort((a, b) => (isBefore(a, b) ? -1 : 1));
      this.#clearAt = Math.max(FEW_ALARMS, 2 * this.#heap.length);
    }
    let at = this.#heap.push(alarm) - 1;
    for (let parent = (at - 1) >> 1; at > 0 && isBefore(alarm, this.#heap[parent]!); parent = (at - 1) >> 1) {
      this.#heap[at] = this.#heap[parent]!;
      at = parent;
    }
    this.#heap[at] = alarm;
  }

  removeFirst(): void {
    const last = this.#heap.pop()!;
    const { length } = this.#heap;
    if (length === 0) return;
    let at = 0;
    for (let child = 1; child < length; child = 2 * at + 1) {
      if (child + 1 < length && isBefore(this.#heap[child + 1]!, this.#heap[child]!)) child++;
      if (!isBefore(this.#heap[child]!, last)) break;
      this.#heap[at] = this.#heap[child]!;
      at = child;
    }
    this.#heap[at] = last;
  }
}

const isBefore = (one: Alarm, other: Alarm): boolean =>
  one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
