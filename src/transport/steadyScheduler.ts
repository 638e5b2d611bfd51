import { asyncScheduler, type SchedulerAction, type SchedulerLike } from 'rxjs';
import { steadyClock } from '../support/steadyClock.js';
import { backgroundScheduler } from './backgroundScheduler.js';

/** A scheduler with the same timers, whose clock is {@link steadyClock}'s. */
export const steady = (scheduler: SchedulerLike, now = steadyClock(() => scheduler.now())): SchedulerLike => ({
  now,
  schedule: <T>(work: (this: SchedulerAction<T>, state?: T) => void, delayMs = 0, state?: T) =>
    scheduler.schedule(work, delayMs, state),
});

// One clock for all clients of the process: the more often it is looked at, the better it is.
const now = steadyClock(() => performance.timeOrigin + performance.now());

/** For every wait of a client, unless it is given a scheduler. */
export const steadyScheduler: SchedulerLike = steady(asyncScheduler, now);
/** The same clock, with timers that do not keep the process alive. */
export const steadyBackground: SchedulerLike = steady(backgroundScheduler, now);
