import { map, type Observable } from 'rxjs';
import { markLast } from '../flow/internal/markLast.js';
import { type Mark, type MarkedBatch, type MarkOperator, numberBatches, type TrainingBatch } from './trainingBatch.js';

/** Options of `markBatches`. */
export interface MarkBatchesOptions {
  /**
   * Whether the mark is told which batch is the last. Each batch is then held back until the next one comes, so not for
   * data that waits for the results of earlier steps. Default: no.
   */
  readonly atEnd?: boolean;
}

/**
 * Marks batches: `train` calls `mark(trainer, at)` right after it has submitted the step of each.
 *
 * ```
 * source    -a-b-c-|
 * result    -A-B-C-|               every batch carries the mark; it decides whether anything is due
 * ```
 * Stands before {@link train}. A step's result comes too late for what has to take its turn right after that step: later
 * steps are already sent. What a mark calls on the trainer is in turn:
 * ```ts
 * markBatches((trainer: TrainingClient, { steps, start }) => {
 *   if (steps % 100 === 0) start(trainer.saveWeightsExternal(`export-${steps}`));
 * })
 * ```
 * What it returns may add to the step, be evaluated beside training, or be done once the step is out: {@link MarkResult}.
 * Errors and completion pass. Holds nothing, or one batch with `atEnd`.
 *
 * @see checkpointEvery
 * @see evaluateEvery
 */
export function markBatches<N = unknown>(mark: Mark<N>, { atEnd = false }: MarkBatchesOptions = {}): MarkOperator<N> {
  return <T>(source: Observable<TrainingBatch<T>>) => {
    const marked = numberBatches(source).pipe(
      map((batch): MarkedBatch<T & N> => ({ ...batch, marks: [...batch.marks, mark] })),
    );
    return atEnd ? marked.pipe(markLast<T & N>()) : marked;
  };
}
