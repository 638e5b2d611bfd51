import { defer, filter, interval, map, type Observable, type SchedulerLike } from 'rxjs';

/** How often is looked, and the delay that is reported. */
const LOOK_MS = 1000;
const BLOCKED_MS = 5000;

/**
 * For how long nothing ran in this process, in milliseconds, each time it was more than five seconds: something blocked the event loop, or
 * the machine slept. Heartbeats alone would show no block that ends before the next of them. Never ends. Holds nothing.
 *
 * @param background whose timers wake it
 * @param timeOfDay a clock that continues while nothing runs
 */
export function blockedTimes(background: SchedulerLike, timeOfDay: Pick<SchedulerLike, 'now'>): Observable<number> {
  return defer(() => {
    let lookedMs = timeOfDay.now();
    return interval(LOOK_MS, background).pipe(
      map(() => {
        const lateMs = timeOfDay.now() - lookedMs - LOOK_MS;
        lookedMs += lateMs + LOOK_MS;
        return lateMs;
      }),
      filter((lateMs) => lateMs > BLOCKED_MS),
    );
  });
}
