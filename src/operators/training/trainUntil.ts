import {
  concat,
  concatMap,
  defer,
  EMPTY,
  map,
  type Observable,
  type ObservableInput,
  of,
  type OperatorFunction,
  Subject,
  takeUntil,
  tap,
} from 'rxjs';
import { currentGate } from '../pressure/gate.js';
import { saveNow, type SaveNowOptions } from './shared/saveNow.js';
import { whenOpen } from '../pressure/shared/whenOpen.js';
import { markBatches } from './markBatches.js';
import type { Step } from './step.js';
import { train, type TrainOptions } from './train.js';
import type { Saves, Trainable } from './Trainable.js';
import { type MarkPoint, numberBatches, type TrainingBatch } from './trainingBatch.js';

/** The checkpoint that is saved where a run is stopped. */
export interface StopCheckpointOptions extends SaveNowOptions {
  /** What to save: the state to resume from (default), or that and the weights to sample from. */
  readonly kind?: 'state' | 'both';
}

/** The options of `train`, and what to save where the run is stopped. */
export type TrainUntilOptions = TrainOptions & {
  /** The checkpoint to save when the run is stopped. Default: see {@link StopCheckpointOptions}. */
  readonly checkpoint?: StopCheckpointOptions;
};

/**
 * {@link train} that can be stopped: it submits nothing once `stop` has emitted, finishes the steps that were submitted,
 * and saves a checkpoint of the last one, to resume from.
 *
 * ```
 * source    (abcd|)                ahead 0, four frames per step, two for a save
 * stop$     ------x
 * result    ----s-----(t|)         b was submitted and is finished; t has its checkpoint; c and d are not trained on
 * ```
 * ```ts
 * const stop$ = fromEvent(process, 'SIGINT').pipe(take(1));
 * batches.pipe(checkpointEvery({ steps: 20 }), trainUntil(stop$, trainer, options), metricsLog('runs/first'))
 * ```
 * `stop` may also be made of the steps, with operators such as {@link plateau}, {@link slope} and {@link anomaly}:
 * ```ts
 * trainUntil((steps) => steps.pipe(plateau({ metric: 'test/nll', patience: 3 })), trainer, options)   // early stopping
 * trainUntil((steps) => merge(timer(3_600_000), steps.pipe(anomaly({ above: 9 }))), trainer, options)  // or on divergence
 * ```
 * Batches that came early wait here, not in `train`, so that at most `ahead` + 1 steps finish after the stop. The
 * checkpoint is that of the last step where it has one already. Where that step is out, it comes again with its
 * checkpoint, which `metricsLog` adds to its line. Stopped before its first step it completes without a value.
 * Errors, completion and unsubscribing as with `train`; `stop` completing means nothing, its error ends the stream.
 * Holds the batches that its source sends without being asked for.
 *
 * @see resumeFrom
 */
export function trainUntil<T extends Trainable & Saves>(
  stop: ObservableInput<unknown> | ((steps: Observable<Step>) => ObservableInput<unknown>),
  trainer: T,
  { checkpoint = {}, ...options }: TrainUntilOptions,
): OperatorFunction<TrainingBatch<NoInfer<T>>, Step> {
  const training = train<T>(trainer, options);
  return (source) =>
    defer(() => {
      const steps = new Subject<Step>();
      const stop$ = defer(() => (typeof stop === 'function' ? stop(steps) : stop));
      let stopped = false;
      let submitted: MarkPoint | undefined;
      let last: Step | undefined;
      const saved = (step: Step): Observable<Step> => {
        // Not by the `start` of that point: the run it belongs to is over.
        const { start: _, ...point } = submitted!;
        return saveNow(trainer, point, checkpoint).pipe(map((found) => ({ ...step, checkpoint: found })));
      };
      const batches = numberBatches(source).pipe(
        waitForRoom(),
        takeUntil(stop$.pipe(tap(() => (stopped = true)))),
        markBatches<T>((_, at) => void (submitted = at)),
      );
      return concat(
        batches.pipe(
          training,
          concatMap((step) => {
            last = step;
            steps.next(step);
            const isLast = stopped && step.index === submitted!.index && step.checkpoint === undefined;
            return isLast ? saved(step).pipe(tap((whole) => (last = whole))) : of(step);
          }),
        ),
        defer(() => (stopped && last !== undefined && last.checkpoint === undefined ? saved(last) : EMPTY)),
      );
    });
}

/** Hands a batch on when there is room for it, not before. */
function waitForRoom<B>(): (source: Observable<B>) => Observable<B> {
  return (source) =>
    defer(() => {
      const gate = currentGate();
      return source.pipe(concatMap((batch) => whenOpen(gate).pipe(map(() => batch))));
    });
}
