import {
  asyncScheduler,
  concat,
  concatAll,
  concatMap,
  defer,
  EMPTY,
  filter,
  map,
  merge,
  type OperatorFunction,
  type SchedulerLike,
  Subject,
  switchMap,
  takeUntil,
} from 'rxjs';
import { checkAtLeast } from '../../../support/checks.js';
import { longTimer } from '../../../support/longTimer.js';
import { whenOpen } from '../../pressure/shared/whenOpen.js';
import { currentGate } from '../../pressure/gate.js';
import { keepGate } from '../../pressure/keepGate.js';

/** How long a batch may wait. */
export interface WithinOptions {
  /**
   * How long after its first value a batch is emitted at the latest, in milliseconds: ≥ 0. While what is downstream is full, it waits and
   * continues to fill. Default: no limit.
   */
  readonly withinMs?: number;
  /** For `withinMs`. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/** A batch that is being filled. */
export interface Filling<T> {
  /** Adds a value; gives the batches that are full because of it. */
  add(value: T): readonly (readonly T[])[];
  /** Takes what there is: one batch, or none. */
  flush(): readonly (readonly T[])[];
  readonly isEmpty: boolean;
}

const isFull = <T>(batches: readonly (readonly T[])[]) => batches.length > 0;

/** Fills batches, and emits one when it is full, when its time is up, or at the end. */
export function inBatches<T>(
  fill: () => Filling<T>,
  { withinMs = Infinity, scheduler = asyncScheduler }: WithinOptions,
): OperatorFunction<T, readonly T[]> {
  checkAtLeast({ withinMs }, 0);
  return (source) =>
    defer(() => {
      const filling = fill();
      if (withinMs === Infinity) {
        return concat(
          source.pipe(
            map((value) => filling.add(value)),
            filter(isFull),
            concatAll(),
          ),
          defer(() => filling.flush()),
        );
      }
      const gate = currentGate();
      const time = longTimer(withinMs, scheduler);
      const ended = new Subject<void>();
      /** The number of the batch that has its first value, or none. */
      const begun = new Subject<number | undefined>();
      let number = 0;
      let waiting: number | undefined;
      const values = source.pipe(
        map((value) => {
          const full = filling.add(value);
          number += full.length;
          const waits = filling.isEmpty ? undefined : number;
          if (waits !== waiting) begun.next((waiting = waits));
          return full;
        }),
        filter(isFull),
        concatAll(),
      );
      const rest = defer(() => {
        ended.next();
        return filling.flush();
      });
      const due = begun.pipe(
        switchMap((waits) => (waits === undefined ? EMPTY : time)),
        keepGate(),
        switchMap(() => {
          // One that became full while it waited for room is no longer due, nor is the one after it.
          const due = number;
          return whenOpen(gate).pipe(filter(() => due === number));
        }),
        concatMap(() => {
          number++;
          return filling.flush();
        }),
        takeUntil(ended),
      );
      return merge(due, concat(values, rest));
    });
}
