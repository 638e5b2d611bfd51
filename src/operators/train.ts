import {
  bufferCount,
  concat,
  concatMap,
  defer,
  finalize,
  ignoreElements,
  map,
  type Observable,
  type ObservableInput,
  of,
  type OperatorFunction,
  type SchedulerLike,
  Subscription,
} from 'rxjs';
import type { CustomLossFn, LossHandle } from '../client/training/customLoss.js';
import type { SamplingClient } from '../client/SamplingClient.js';
import type { Datum } from '../wire/datum.js';
import type { AdamParams, OptimizerParams } from '../wire/optimizer.js';
import type { ForwardBackwardOutput, LossFnConfig, LossFnType } from '../wire/training.js';
import { concatMapAhead } from './concatMapAhead.js';
import { carryEvaluations, type FinishedStep } from './internal/carryEvaluations.js';
import { submitSteps } from './internal/submitSteps.js';
import { withCycles } from './internal/withCycles.js';
import type { Schedule } from './schedules.js';
import type { Step } from './step.js';
import { numberBatches, type TrainingBatch } from './trainingBatch.js';

/** What `train` needs of a trainer. A `TrainingClient` is one; so is a fake in a test. */
export interface Trainable<S = SamplingClient> {
  forwardBackward(
    data: readonly Datum[],
    loss: LossFnType,
    options?: { readonly lossFnConfig?: LossFnConfig },
  ): ObservableInput<ForwardBackwardOutput>;
  /** Needed for losses of one's own. */
  forwardBackwardCustom?(
    data: readonly Datum[],
    loss: CustomLossFn | LossHandle,
  ): ObservableInput<ForwardBackwardOutput>;
  optimStep(
    params: AdamParams | OptimizerParams,
  ): ObservableInput<{ readonly metrics?: Readonly<Record<string, number>> | undefined }>;
  /** Needed for `checkpointEvery`. */
  saveState?(name: string, options: { readonly ttlSeconds?: number }): ObservableInput<{ readonly path: string }>;
  saveWeightsForSampler?(
    name: string,
    options: { readonly ttlSeconds?: number },
  ): ObservableInput<{ readonly path: string }>;
  /** Needed for `evaluateEvery`. */
  saveWeightsAndGetSamplingClient?(): ObservableInput<S>;
}

type Scheduled<P> = Omit<P, 'learningRate'> & { readonly learningRate?: number | Schedule };

export interface TrainOptions {
  /** A loss of the service by name, a function in closed form, or the handle of an uploaded loss. */
  readonly loss: LossFnType | CustomLossFn | LossHandle;
  /** Numbers and texts the named loss takes. */
  readonly lossFnConfig?: LossFnConfig;
  /** Adam's parameters; the learning rate may follow a schedule. Default: the service's, with a rate of 1e-4. */
  readonly adam?: Scheduled<AdamParams>;
  /** Another optimizer family, in place of `adam`; `type` is its name. */
  readonly optimizer?: Scheduled<OptimizerParams>;
  /** How many further steps are submitted before the result of one is there: an integer ≥ 0. Default 1. */
  readonly ahead?: number;
  /** How many batches' gradients are added up for one optimizer step: an integer ≥ 1. Default 1. */
  readonly accumulate?: number;
  /** In how many parts a batch is trained on, each with an optimizer step of its own: an integer ≥ 1. Default 1. */
  readonly substeps?: number;
  /** Whether steps carry the tensors the loss gave for each datum. Default: no, they are large. */
  readonly keepOutputs?: boolean;
  /** For durations and expiry times. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Trains on batches, in order, with the next ones already submitted while one runs.
 *
 * ```
 * source    (abcd|)                ahead 1, four frames a step on the service
 * a         ----s|
 * b         --------t|             submitted at once, behind a
 * c             --------u|         submitted when a is done, behind b
 * d                 --------v|
 * result    ----s---t---u---(v|)
 * ```
 * For every batch, forward-backward and the optimizer step are submitted together, then whatever `checkpointEvery` and
 * `evaluateEvery` marked it with: a save takes its turn right after the optimizer step it belongs to, and later steps
 * do not wait for it. A step is emitted, in order, when its results and its checkpoint are there.
 *
 * An error of the trainer comes out in its turn, and nothing new is submitted; an error of the source comes out after
 * the steps before it. Completes after the last step and the last evaluation. Unsubscribing stops new submissions and
 * the waiting; what was sent still runs and is billed. Its {@link Gate} is closed while `ahead` further steps are
 * submitted, so files are read no faster than the service trains. Holds no data that is not submitted but for the
 * batches it accumulates.
 */
export function train<S = SamplingClient>(
  trainer: Trainable<S>,
  options: TrainOptions,
): OperatorFunction<TrainingBatch<S>, Step> {
  const { ahead = 1, accumulate = 1, substeps = 1 } = options;
  if (!(ahead >= 0)) throw new RangeError(`ahead must be >= 0, got ${ahead}`);
  if (!Number.isInteger(accumulate) || accumulate < 1) {
    throw new RangeError(`accumulate must be an integer >= 1, got ${accumulate}`);
  }
  if (!Number.isInteger(substeps) || substeps < 1) {
    throw new RangeError(`substeps must be an integer >= 1, got ${substeps}`);
  }
  if (accumulate > 1 && substeps > 1) throw new RangeError('accumulate and substeps cannot both be above 1');
  if (options.adam !== undefined && options.optimizer !== undefined) {
    throw new RangeError('adam and optimizer cannot both be given');
  }
  return (source) =>
    defer(() => {
      const running = new Subscription();
      return numberBatches(source).pipe(
        accumulate === 1 ? map((batch) => [batch]) : bufferCount(accumulate),
        concatMapAhead(submitSteps(trainer, options, running), { ahead, delayError: true }),
        // A save is waited for here, where it keeps the steps in order but no later one from being submitted.
        concatMapAhead(
          ({ checkpoint, ...submitted }): Observable<FinishedStep> =>
            checkpoint === undefined
              ? of(submitted)
              : checkpoint.pipe(map((saved) => ({ ...submitted, step: { ...submitted.step, checkpoint: saved } }))),
          { ahead: Infinity, delayError: true },
        ),
        withCycles(),
        carryEvaluations(),
        concatMap(({ step, afterwards }) =>
          step.checkpoint === undefined || afterwards === undefined
            ? of(step)
            : concat(of(step), defer(() => afterwards(step.checkpoint!)).pipe(ignoreElements())),
        ),
        finalize(() => running.unsubscribe()),
      );
    });
}
