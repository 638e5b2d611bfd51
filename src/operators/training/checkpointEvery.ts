import { concat, defer, from, ignoreElements, map, type Observable, type ObservableInput } from 'rxjs';
import { checkIntegers } from '../../support/checks.js';
import { planCheckpoints } from './internal/checkpointMark.js';
import { markLast } from '../flow/internal/markLast.js';
import type { Saves } from './Trainable.js';
import { type Checkpoint, type MarkOperator, numberBatches, type TrainingBatch } from './trainingBatch.js';

/** Options of `checkpointEvery`. */
export interface CheckpointEveryOptions {
  /** How many steps lie between two checkpoints: an integer ≥ 1. */
  readonly steps: number;
  /** How many steps lie between two checkpoints that are kept for good: a multiple of `steps`. Default: all are, unless `ttlSeconds` or `keepLast` is given. */
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
   * Whether there is one after the last step too. Each batch is then held back until the next one comes, so not for data that
   * waits for the results of earlier steps. Default: no.
   */
  readonly atEnd?: boolean;
}

/**
 * Marks batches: `train` saves a checkpoint every n steps, right after the step.
 *
 * ```
 * source    -a-b-c-d-|             steps 2
 * result    -a-B-c-D-|             saved right after the steps of b and d
 * ```
 * Stands before {@link train}. The save takes its turn right after its step's optimizer step, without draining the
 * pipeline, so a checkpoint holds exactly the step its name says. The path comes out as `checkpoint` of that step.
 * Steps are counted as `train` counts them, also where several batches make one and in a run that was resumed. Several
 * checkpoints wanted after one step are one. Errors and completion pass. Holds nothing, or one batch with `atEnd`.
 *
 * @see metricsLog which records them, and resumeFrom
 */
export function checkpointEvery({
  steps,
  keepEvery,
  ttlSeconds,
  keepLast,
  remove,
  kind = 'state',
  name = (count) => `step-${String(count).padStart(6, '0')}`,
  atEnd = false,
}: CheckpointEveryOptions): MarkOperator<Saves> {
  checkIntegers({ steps }, 1);
  if (keepEvery !== undefined && !(keepEvery >= steps && keepEvery % steps === 0)) {
    throw new RangeError(`keepEvery must be a multiple of steps (${steps}), got ${keepEvery}`);
  }
  if (keepLast !== undefined && !(keepLast >= 1)) throw new RangeError(`keepLast must be >= 1, got ${keepLast}`);
  if (keepLast !== undefined && remove === undefined) throw new RangeError('keepLast needs remove');
  const rolling = ttlSeconds !== undefined || keepLast !== undefined;
  return <T>(source: Observable<TrainingBatch<T>>) =>
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
      const marked = numberBatches(source).pipe(
        map(
          planCheckpoints({
            due: (at) => at.steps % steps === 0 || (atEnd && at.last),
            kind,
            name,
            kept: (at) => (keepEvery === undefined ? !rolling : at.steps % keepEvery === 0),
            ttlSeconds,
            afterwards: keepLast === undefined ? undefined : afterwards,
          }),
        ),
      );
      return atEnd ? marked.pipe(markLast<T & Saves>()) : marked;
    });
}
