import { Observable, defer, first, repeat, type SchedulerLike, type Subscriber, type Subscription } from 'rxjs';
import { longTimer } from '../../support/longTimer.js';
import { StuckError } from '../errors.js';

/**
 * Notices when nothing moves any more: as long as any of the watched work finishes now and then, all of it may take
 * its time; after `longestMs` without a single one finishing, all of it fails as stuck.
 */
export class StallDetector {
  readonly #watched = new Set<Subscriber<never>>();
  #lastMs = 0;
  #alarm: Subscription | undefined;

  constructor(
    readonly longestMs: number,
    readonly scheduler: SchedulerLike,
  ) {}

  /** The work, failing as stuck with all the rest. A set, not a shared stream: RxJS searches a list for each one that leaves. */
  watch<T>(work: Observable<T>): Observable<T> {
    return new Observable((subscriber) => {
      if (this.#watched.size === 0) this.#start();
      this.#watched.add(subscriber);
      subscriber.add(() => {
        this.#watched.delete(subscriber);
        if (this.#watched.size === 0) this.#alarm?.unsubscribe();
      });
      work.subscribe(subscriber);
    });
  }

  /** Some of the watched work has finished. */
  noteFinished(): void {
    this.#lastMs = this.scheduler.now();
  }

  #start(): void {
    this.noteFinished();
    const { longestMs, scheduler } = this;
    if (longestMs === Infinity) return;
    const leftMs = (): number => this.#lastMs + longestMs - scheduler.now();
    this.#alarm = defer(() => longTimer(leftMs(), scheduler))
      .pipe(
        repeat(),
        first(() => leftMs() <= 0),
      )
      .subscribe(() => {
        const minutes = Math.round(longestMs / 60_000);
        const error = new StuckError(`no sample of this client made progress for ${minutes} minutes`, {
          retryable: true,
        });
        for (const subscriber of [...this.#watched]) subscriber.error(error);
      });
  }
}
