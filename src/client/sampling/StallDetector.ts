import { NEVER, Observable, defer, filter, map, repeat, share, timer, type SchedulerLike } from 'rxjs';
import { LONGEST_TIMER_MS } from '../../transport/system.js';
import { StuckError } from '../errors.js';

/**
 * Notices when nothing moves any more: as long as any of the watched work finishes now and then, all of it may take
 * its time; after `longestMs` without a single one finishing, all of it fails as stuck.
 */
export class StallDetector {
  readonly #stuck: Observable<never>;
  readonly #scheduler: SchedulerLike;
  #lastMs = 0;

  constructor(longestMs: number, scheduler: SchedulerLike) {
    this.#scheduler = scheduler;
    const minutes = Math.round(longestMs / 60_000);
    const leftMs = (): number => this.#lastMs + longestMs - scheduler.now();
    const alarm = defer(() => timer(Math.min(leftMs(), LONGEST_TIMER_MS), scheduler)).pipe(
      repeat(),
      filter(() => leftMs() <= 0),
      map(() => {
        throw new StuckError(`no sample of this client made progress for ${minutes} minutes`, { retryable: true });
      }),
    );
    this.#stuck = defer(() => {
      this.noteFinished();
      return longestMs === Infinity ? NEVER : alarm;
    }).pipe(share());
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
    this.#lastMs = this.#scheduler.now();
  }
}
