import { asyncScheduler, EMPTY, type MonoTypeOperatorFunction, type SchedulerLike, timeout } from 'rxjs';

export interface TakeUntilIdleOptions {
  /** How long the source may be silent, from subscribe on: ≥ 0. */
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
 * Errors and completion pass at once. The source is unsubscribed when the time is up. Holds nothing.
 */
export function takeUntilIdle<T>({
  idleMs,
  scheduler = asyncScheduler,
}: TakeUntilIdleOptions): MonoTypeOperatorFunction<T> {
  if (!(idleMs >= 0)) throw new RangeError(`idleMs must be >= 0, got ${idleMs}`);
  return (source) => source.pipe(timeout({ each: idleMs, scheduler, with: () => EMPTY }));
}
