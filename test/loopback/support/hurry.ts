import { asyncScheduler, type SchedulerAction, type SchedulerLike } from 'rxjs';

/** Real time, but every wait is shorter by a factor: backoff of seconds in a test of milliseconds. */
export const hurry = (factor: number): SchedulerLike => ({
  now: () => asyncScheduler.now() * factor,
  schedule: <T>(work: (this: SchedulerAction<T>, state?: T) => void, delay = 0, state?: T) => {
    const action = asyncScheduler.schedule(work, delay / factor, state) as SchedulerAction<T>;
    // An interval waits by its action, not by the scheduler, from the second time on.
    const again = action.schedule.bind(action);
    action.schedule = (next, wait = 0) => again(next, wait / factor);
    return action;
  },
});
