import { Observable, type Subscriber, type Subscription, timer, type SchedulerLike } from 'rxjs';
import { LONGEST_TIMER_MS } from '../../transport/system.js';
import { StuckError } from '../errors.js';

/**
 * Notices when nothing moves any more: as long as any of the watched work finishes now and then, all of it may take
 * its time; after `longestMs` without a single one finishing, all of it fails as stuck.
 */
export class Progress {
  readonly #watched = new Set<Subscriber<never>>();
  #lastMs = 0;
  #alarm: Subscription | undefined;

  constructor(
    readonly longestMs: number,
    readonly scheduler: SchedulerLike,
  ) {}

  watch<T>(work: Observable<T>): Observable<T> {
    return new Observable((subscriber) => {
      if (this.#watched.size === 0) this.#lastMs = this.scheduler.now();
      this.#watched.add(subscriber);
      this.#setAlarm();
      subscriber.add(() => {
        this.#watched.delete(subscriber);
        if (this.#watched.size === 0) this.#alarm?.unsubscribe();
      });
      work.subscribe(subscriber);
    });
  }

  /** Some of the watched work has finished. */
  made(): void {
    this.#lastMs = this.scheduler.now();
  }

  #setAlarm(): void {
    if (this.#alarm !== undefined && !this.#alarm.closed) return;
    const leftMs = this.#lastMs + this.longestMs - this.scheduler.now();
    this.#alarm = timer(Math.min(leftMs, LONGEST_TIMER_MS), this.scheduler).subscribe(() => {
      this.#alarm?.unsubscribe();
      if (this.scheduler.now() - this.#lastMs < this.longestMs) return this.#setAlarm();
      const minutes = Math.round(this.longestMs / 60_000);
      for (const subscriber of [...this.#watched]) {
        subscriber.error(
          new StuckError(`no sample of this client made progress for ${minutes} minutes`, { retryable: true }),
        );
      }
    });
  }
}
