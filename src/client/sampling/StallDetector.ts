import { NEVER, Observable, Subject, map, share, startWith, switchMap, timer, type SchedulerLike } from 'rxjs';
import { LONGEST_TIMER_MS } from '../../transport/system.js';
import { StuckError } from '../errors.js';

/**
 * Notices when nothing moves any more: as long as any of the watched work finishes now and then, all of it may take
 * its time; after `longestMs` without a single one finishing, all of it fails as stuck.
 */
export class StallDetector {
  readonly #finished = new Subject<void>();
  readonly #stuck: Observable<never>;

  constructor(longestMs: number, scheduler: SchedulerLike) {
    const minutes = Math.round(longestMs / 60_000);
    this.#stuck = this.#finished.pipe(
      startWith(undefined),
      switchMap(() => (longestMs > LONGEST_TIMER_MS ? NEVER : timer(longestMs, scheduler))),
      map(() => {
        throw new StuckError(`no sample of this client made progress for ${minutes} minutes`, { retryable: true });
      }),
      share(),
    );
  }

  /** The work, failing as stuck with all the rest. */
  watch<T>(work: Observable<T>): Observable<T> {
    return new Observable((subscriber) => {
      subscriber.add(this.#stuck.subscribe({ error: (error) => subscriber.error(error) }));
      work.subscribe(subscriber);
    });
  }

  /** Some of the watched work has finished. */
  noteFinished(): void {
    this.#finished.next();
  }
}
