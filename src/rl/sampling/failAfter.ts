import { map, merge, type Observable, type SchedulerLike, take } from 'rxjs';
import { longTimer } from '../../support/longTimer.js';

/** The one value of a source, or an error named `TimeoutError` where `what` takes longer than `timeoutMs`. */
export function failAfter<A>(
  source: Observable<A>,
  what: string,
  timeoutMs: number,
  scheduler: SchedulerLike,
): Observable<A> {
  const late = longTimer(timeoutMs, scheduler).pipe(
    map((): never => {
      throw tooSlow(what, timeoutMs);
    }),
  );
  return merge(source, late).pipe(take(1));
}

/** What took longer than it may. */
export function tooSlow(what: string, timeoutMs: number): Error {
  const error = new Error(`${what} took longer than ${timeoutMs} ms`);
  error.name = 'TimeoutError';
  return error;
}
