import { asyncScheduler, type MonoTypeOperatorFunction, Observable, type SchedulerLike, type Subscription } from 'rxjs';
import { checkAtLeast } from '../../support/checks.js';
import { Downstream, listen } from '../pressure/shared/listen.js';
import { longTimer } from '../../support/longTimer.js';

/** Options of `takeUntilIdle`. */
export interface TakeUntilIdleOptions {
  /** How long the source may be silent, from subscribe on, in milliseconds: ≥ 0; Infinity: forever. */
  readonly idleMs: number;
  /** Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Completes when the source has been silent for `idleMs`.
 *
 * ```
 * source    -a-b---------c-|       idleMs 4
 * result    -a-b---|
 * ```
 * Errors and completion pass at once. The source is unsubscribed when the time is up. Holds nothing. A source that is
 * paused, because the bounded operator downstream is full, is not idle: its time starts again when it continues.
 */
export function takeUntilIdle<T>({
  idleMs,
  scheduler = asyncScheduler,
}: TakeUntilIdleOptions): MonoTypeOperatorFunction<T> {
  checkAtLeast({ idleMs }, 0);
  return (source) =>
    new Observable<T>((subscriber) => {
      let sinceMs = scheduler.now();
      let alarm: Subscription;
      const wait = (delayMs: number) => (alarm = longTimer(delayMs, scheduler).subscribe(look));
      /** One alarm for many values: when it goes off, it looks how long the silence has been. */
      const look = () => {
        if (!downstream.isOpen) return downstream.waitIfClosed();
        // It may have been closed, and open again, since the last value.
        if (downstream.gate?.openings !== openings) startAnew();
        const leftMs = sinceMs + idleMs - scheduler.now();
        if (leftMs > 0) wait(leftMs);
        else subscriber.complete();
      };
      const startAnew = () => {
        sinceMs = scheduler.now();
        openings = downstream.gate?.openings;
      };
      const downstream = new Downstream<T>(subscriber, look);
      let openings = downstream.gate?.openings;
      wait(idleMs);
      subscriber.add(() => alarm.unsubscribe());
      const next = (value: T) => {
        sinceMs = scheduler.now();
        subscriber.next(value);
      };
      listen(source, downstream, { next, complete: () => subscriber.complete() }, undefined);
    });
}
