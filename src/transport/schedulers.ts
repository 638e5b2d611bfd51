import { Subscription, asyncScheduler, type SchedulerAction, type SchedulerLike } from 'rxjs';
import { steadyClock } from '../support/steadyClock.js';

/** One timer at a time, until it is not asked for another. */
class BackgroundAction<T> extends Subscription implements SchedulerAction<T> {
  #timer: NodeJS.Timeout | undefined;

  constructor(readonly work: (this: SchedulerAction<T>, state?: T) => void) {
    super(() => clearTimeout(this.#timer));
  }

  schedule(state?: T, delayMs = 0): Subscription {
    if (this.closed) return this;
    clearTimeout(this.#timer);
    const timer = setTimeout(() => {
      this.work(state);
      if (this.#timer === timer) this.unsubscribe();
    }, delayMs);
    this.#timer = timer.unref();
    return this;
  }
}

/**
 * RxJS's asyncScheduler, but its timers do not keep the process alive: for heartbeats and other work beside the calls. A
 * program that forgets to close its client then ends when its own work is done.
 */
export const backgroundScheduler: SchedulerLike = {
  now: () => asyncScheduler.now(),
  schedule: <T>(work: (this: SchedulerAction<T>, state?: T) => void, delayMs = 0, state?: T) =>
    new BackgroundAction<T>(work).schedule(state, delayMs),
};

/** The same scheduler with another clock: {@link steadyClock}'s. */
export const steady = (scheduler: SchedulerLike, now = steadyClock(() => scheduler.now())): SchedulerLike =>
  Object.assign(Object.create(scheduler) as SchedulerLike, { now });

// Shared by all clients of the process, because frequent reads make it more accurate.
const now = steadyClock(() => performance.timeOrigin + performance.now());

/** For every wait of a client, unless it is given a scheduler. */
export const steadyScheduler: SchedulerLike = steady(asyncScheduler, now);
/** The same clock, with timers that do not keep the process alive. */
export const steadyBackground: SchedulerLike = steady(backgroundScheduler, now);
