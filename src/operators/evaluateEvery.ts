import { map, type ObservableInput, type OperatorFunction } from 'rxjs';
import type { SamplingClient } from '../client/SamplingClient.js';
import { markLast } from './internal/markLast.js';
import { type EvaluationPoint, type MarkedBatch, numberBatches, type TrainingBatch } from './trainingBatch.js';

export interface EvaluateEveryOptions<S> {
  /** An evaluation after every so many batches: an integer ≥ 1. */
  readonly steps: number;
  /** Evaluates the weights as they were right after the step; the last value it gives is the result. */
  readonly evaluate: (sampler: S, at: EvaluationPoint) => ObservableInput<Readonly<Record<string, number>>>;
  /** Whether the last batch is marked too; then each is held back until the next one comes. Default: no. */
  readonly atEnd?: boolean;
}

/**
 * Marks every so many batches: `train` evaluates a snapshot of the weights right after the step of a marked batch.
 *
 * ```
 * source    -a-b-c-d-|             steps 2
 * result    -a-B-c-D-|             B and D carry a mark
 * ```
 * Stands before {@link train}. The snapshot takes its turn right after its step's optimizer step; `evaluate` runs on it
 * while training goes on, one evaluation at a time, none skipped. Results come out as `evaluations` of the next step
 * after they are there, and of the last step at the latest; while one is running, steps come out one step late. An
 * error of `evaluate` ends the stream of steps. Errors and completion pass. Holds nothing, or one batch with `atEnd`.
 */
export function evaluateEvery<S = SamplingClient>({
  steps,
  evaluate,
  atEnd = false,
}: EvaluateEveryOptions<S>): OperatorFunction<TrainingBatch<S>, MarkedBatch<S>> {
  if (!Number.isInteger(steps) || steps < 1) throw new RangeError(`steps must be an integer >= 1, got ${steps}`);
  const mark = (batch: MarkedBatch<S>): MarkedBatch<S> => ({
    ...batch,
    marks: [...batch.marks, { type: 'evaluation', evaluate }],
  });
  const due = (batch: MarkedBatch<S>) => (batch.position + 1) % steps === 0;
  return (source) =>
    atEnd
      ? numberBatches(source).pipe(markLast((batch, last) => (last || due(batch) ? mark(batch) : batch)))
      : numberBatches(source).pipe(map((batch) => (due(batch) ? mark(batch) : batch)));
}
