import { AsyncSubject, share, type Observable } from 'rxjs';

/**
 * Runs once for all subscribers: later ones get the kept result. A failure is not kept, so a later subscriber tries again.
 * When the last subscriber leaves it stops, so that a call that gave up leaves no retries behind.
 */
export const once = <A>(source: Observable<A>): Observable<A> =>
  source.pipe(
    share({
      connector: () => new AsyncSubject<A>(),
      resetOnError: true,
      resetOnComplete: false,
      resetOnRefCountZero: true,
    }),
  );
