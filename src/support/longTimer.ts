import { concatMap, NEVER, type Observable, type SchedulerLike, timer } from 'rxjs';

/** The most `setTimeout` can wait; what is longer fires at once. */
const LONGEST_MS = 2 ** 31 - 1;

/** RxJS's `timer`, also for more than 24 days, and forever. */
export function longTimer(delayMs: number, scheduler: SchedulerLike): Observable<unknown> {
  if (delayMs === Infinity) return NEVER;
  if (delayMs <= LONGEST_MS) return timer(delayMs, scheduler);
  return timer(LONGEST_MS, scheduler).pipe(concatMap(() => longTimer(delayMs - LONGEST_MS, scheduler)));
}
