import { concat, defer, from, ignoreElements, map, type ObservableInput, type OperatorFunction } from 'rxjs';
import { markLast } from './internal/markLast.js';
import {
  type Checkpoint,
  type CheckpointMark,
  type MarkedBatch,
  numberBatches,
  type TrainingBatch,
} from './trainingBatch.js';

export interface CheckpointEveryOptions {
  /** A checkpoint after every so many batches: an integer ≥ 1. */
  readonly steps: number;
  /** Of these, one is kept for good after every so many batches: a multiple of `steps`. Default: all are, unless `ttlSeconds` or `keepLast` is given. */
  readonly keepEvery?: number;
  /** When the service may drop those that are not kept: 3600 s to ten years. Default: never. */
  readonly ttlSeconds?: number;
  /** How many of those that are not kept are left; older ones go to `remove`, once the step that brings a newer one is out. Default: all. */
  readonly keepLast?: number;
  /** Deletes a checkpoint, for `keepLast`: `(path) => rest.deleteCheckpointFromTinkerPath(path)`. Its failure ends the stream. */
  readonly remove?: (path: string) => ObservableInput<unknown>;
  /** What to save: the state to resume from (default), the weights to sample from, or both. */
  readonly kind?: 'state' | 'sampler' | 'both';
  /** The name, given how many steps are in it. Default: `step-000020`. */
  readonly name?: (steps: number) => string;
  /**
   * Whether the last batch is marked too. Each batch is then held back until the next one comes, so not for data that
   * waits for the results of earlier steps. Default: no.
   */
  readonly atEnd?: boolean;
}

/**
 * Marks every so many batches: `train` saves a checkpoint right after the step of a marked batch.
 *
 * ```
 * source    -a-b-c-d-|             steps 2
 * result    -a-B-c-D-|             B and D carry a mark
 * ```
 * Stands before {@link train}. The save takes its turn right after its step's optimizer step, without draining the
 * pipeline, so a checkpoint holds exactly the step its name says. The path comes out as `checkpoint` of that step.
 * Batches are counted by their position in the data; where `train` accumulates several into a step, a mark among them
 * is carried out after that step. Several marks on one step make one checkpoint. Errors and completion pass. Holds nothing, or one batch with `atEnd`.
 *
 * @see metricsLog which records them, and resumeFrom
 */
export function checkpointEvery<S = unknown>({
  steps,
  keepEvery,
  ttlSeconds,
  keepLast,
  remove,
  kind = 'state',
  name = (count) => `step-${String(count).padStart(6, '0')}`,
  atEnd = false,
}: CheckpointEveryOptions): OperatorFunction<TrainingBatch<S>, MarkedBatch<S>> {
  if (!Number.isInteger(steps) || steps < 1) throw new RangeError(`steps must be an integer >= 1, got ${steps}`);
  if (keepEvery !== undefined && !(keepEvery >= steps && keepEvery % steps === 0)) {
    throw new RangeError(`keepEvery must be a multiple of steps (${steps}), got ${keepEvery}`);
  }
  if (keepLast !== undefined && !(keepLast >= 1)) throw new RangeError(`keepLast must be >= 1, got ${keepLast}`);
  if (keepLast !== undefined && remove === undefined) throw new RangeError('keepLast needs remove');
  const rolling = ttlSeconds !== undefined || keepLast !== undefined;
  return (source) =>
    defer(() => {
      const passing: Checkpoint[] = [];
      const afterwards = (checkpoint: Checkpoint) => {
        passing.push(checkpoint);
        const old = passing.splice(0, Math.max(0, passing.length - keepLast!));
        const paths = old
          .flatMap(({ statePath, samplerPath }) => [statePath, samplerPath])
          .filter((path) => path !== undefined);
        return concat(...paths.map((path) => from(remove!(path)))).pipe(ignoreElements());
      };
      const mark = (batch: MarkedBatch<S>): MarkedBatch<S> => {
        const kept = keepEvery === undefined ? !rolling : (batch.position + 1) % keepEvery === 0;
        const made: CheckpointMark = {
          type: 'checkpoint',
          kind,
          name,
          kept,
          ...(kept || ttlSeconds === undefined ? {} : { ttlSeconds }),
          ...(kept || keepLast === undefined ? {} : { afterwards }),
        };
        return { ...batch, marks: [...batch.marks, made] };
      };
      const due = (batch: MarkedBatch<S>) => (batch.position + 1) % steps === 0;
      const numbered = numberBatches(source);
      return atEnd
        ? numbered.pipe(markLast((batch, last) => (last || due(batch) ? mark(batch) : batch)))
        : numbered.pipe(map((batch) => (due(batch) ? mark(batch) : batch)));
    });
}
