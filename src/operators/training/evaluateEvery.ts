import { concatMap, map, type ObservableInput } from 'rxjs';
import { checkIntegers } from '../../support/checks.js';
import type { SamplingClient } from '../../client/SamplingClient.js';
import type { Datum } from '../../wire/datum.js';
import type { LossFnConfig, LossFnType } from '../../wire/training.js';
import { factsOf, lossSumOf, perUnit } from './internal/stepFacts.js';
import { missingMethod } from './shared/missingMethod.js';
import { markBatches } from './markBatches.js';
import type { ForwardPasses, TakesSnapshots } from './Trainable.js';
import type { Mark, MarkOperator, MarkPoint } from './trainingBatch.js';

interface Every {
  /** How many steps lie between two evaluations: an integer ≥ 1. */
  readonly steps: number;
  /** Whether there is one after the last step too; then each batch is held back until the next one comes. Default: no. */
  readonly atEnd?: boolean;
}

/** Evaluates a sampler over the weights. */
export interface EvaluateSamplerOptions<S> extends Every {
  /** Evaluates the weights as they were right after the step; the last value it gives is the result. */
  readonly evaluate: (sampler: S, at: MarkPoint) => ObservableInput<Readonly<Record<string, number>>>;
}

/** Takes the loss on held-out data. */
export interface ValidateOptions extends Every {
  /** The held-out data: at least one datum. It is kept for the whole run. */
  readonly validation: readonly Datum[];
  /** The loss it is measured by, a loss of the service. Default 'cross_entropy'. */
  readonly loss?: LossFnType;
  /** Numbers and texts the loss takes. Default: none. */
  readonly lossFnConfig?: LossFnConfig;
}

/** Options of `evaluateEvery`: evaluate a snapshot, or compute the loss on held-out data. */
export type EvaluateEveryOptions<S = SamplingClient> = EvaluateSamplerOptions<S> | ValidateOptions;

/**
 * Marks batches: every n steps, `train` evaluates the weights as they are right after the step.
 *
 * ```
 * source    -a-b-c-d-|             steps 2
 * result    -a-B-c-D-|             evaluated right after the steps of b and d
 * ```
 * Stands before {@link train}. With `evaluate`, a snapshot takes its turn right after its step's optimizer step, and
 * `evaluate` runs on it while training continues. With `validation`, a forward pass over held-out data takes that turn:
 * the result is `{ validation_loss }`, per unit of weight as the loss of a step is, and nothing is saved.
 *
 * Evaluations run one at a time, none is skipped. Results come out as `evaluations` of the next step after they have
 * arrived, and of the last step at the latest; while one is running, steps come out one step late. An error of an
 * evaluation ends the stream of steps. Errors and completion pass. Holds nothing, or one batch with `atEnd`.
 */
export function evaluateEvery(options: ValidateOptions): MarkOperator<ForwardPasses>;
export function evaluateEvery<S = SamplingClient>(options: EvaluateSamplerOptions<S>): MarkOperator<TakesSnapshots<S>>;
export function evaluateEvery<S = SamplingClient>(
  options: EvaluateEveryOptions<S>,
): MarkOperator<ForwardPasses & TakesSnapshots<S>> {
  const { steps, atEnd = false } = options;
  checkIntegers({ steps }, 1);
  const evaluation: Mark<ForwardPasses & TakesSnapshots<S>> =
    'validation' in options ? validate(options) : evaluateSampler(options);
  return markBatches<ForwardPasses & TakesSnapshots<S>>(
    (trainer, at) => (at.steps % steps === 0 || (atEnd && at.last) ? evaluation(trainer, at) : undefined),
    { atEnd },
  );
}

function evaluateSampler<S>({ evaluate }: EvaluateSamplerOptions<S>): Mark<TakesSnapshots<S>> {
  return (trainer, at) => {
    if ((trainer.saveWeightsAndGetSamplingClient as unknown) === undefined)
      throw missingMethod('saveWeightsAndGetSamplingClient', 'evaluateEvery');
    const snapshot = at.start(trainer.saveWeightsAndGetSamplingClient());
    return { evaluation: () => snapshot.pipe(concatMap((sampler) => evaluate(sampler, at))) };
  };
}

function validate({ validation, loss = 'cross_entropy', lossFnConfig }: ValidateOptions): Mark<ForwardPasses> {
  if (validation.length === 0) throw new RangeError('validation must have at least one datum');
  const facts = factsOf(validation);
  if (loss === 'cross_entropy' && !facts.carriesLoss)
    throw new RangeError('validation must have a token with a weight other than 0');
  return (trainer, at) => {
    if ((trainer.forward as unknown) === undefined) throw missingMethod('forward', 'evaluateEvery with validation');
    const pass = at.start(trainer.forward(validation, loss, lossFnConfig === undefined ? {} : { lossFnConfig }));
    return {
      evaluation: () => pass.pipe(map((output) => ({ validation_loss: perUnit(lossSumOf(output), facts) }))),
    };
  };
}
