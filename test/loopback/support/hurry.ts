import { asyncScheduler, type SchedulerAction, type SchedulerLike } from 'rxjs';

/** Real time, but every wait is shorter by a factor: backoff of seconds in a test of milliseconds. */
export const hurry = (factor: number): SchedulerLike => ({
  now: () => asyncScheduler.now() * factor,
  schedule: <T>(work: (this: SchedulerAction<T>, state?: T) => void, delay = 0, state?: T) =>
    asyncScheduler.schedule(work, delay / factor, state),
});
