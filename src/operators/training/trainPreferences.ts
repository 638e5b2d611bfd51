import type { OperatorFunction } from 'rxjs';
import { dpo } from '../../losses/ready/preferences.js';
import type { TracedLoss } from '../../losses/TracedLoss.js';
import { plainMetrics } from './shared/plainMetrics.js';
import type { Step } from './step.js';
import { train, type TrainOptions } from './train.js';
import type { Trainable } from './Trainable.js';
import type { TrainingBatch } from './trainingBatch.js';
import { type ComputesLogprobs, withReference } from '../data/withReference.js';

/** Options of `trainPreferences`: those of `train` except the loss, which comes from here. */
export type TrainPreferencesOptions = Omit<TrainOptions, 'loss' | 'lossFnConfig' | 'substeps'> & {
  /** A loss of pairs. Default `dpo()`, with a beta of 0.1. */
  readonly loss?: TracedLoss;
  /**
   * The model that the trained one is compared with: a sampler over weights that do not change. It is used as it is given, so a
   * resumed run that is given the same one continues with the same losses. Needed where the loss takes `reference_logprobs`.
   */
  readonly reference?: ComputesLogprobs;
  /** How many batches the reference is asked about before `train` wants them: an integer ≥ 0. Default 1. */
  readonly referenceAhead?: number;
};

/**
 * Trains on batches of preferences: chosen and rejected datums in turn, as {@link toPairs} makes them.
 *
 * ```
 * source    (ab|)                  batches of pairs
 * reference --x-y|                 asked about ahead of the steps
 * result    ------s---(t|)
 * ```
 * {@link withReference}, then {@link train}: the loss of pairs runs here, between a forward and a backward pass, and with two steps
 * ahead (`ahead`, default 2) the service is sent [backward n, optimizer step n, forward n + 1] as one burst: one cycle per step. The metrics of the loss are in the step's `metrics` under
 * their plain names: `dpo_loss`, `accuracy`, `margin`, `chosen_reward`, `rejected_reward`. Errors, completion and unsubscribing are as in these two.
 */
export function trainPreferences<T extends Trainable>(
  trainer: T,
  options: TrainPreferencesOptions,
): OperatorFunction<TrainingBatch<T>, Step> {
  const { loss = dpo(), reference, referenceAhead = 1, ...rest } = options;
  if (loss.unit !== 'pair') throw new TypeError(`the loss ${loss.name} is not a loss of pairs`);
  const needsReference = loss.inputs.some(({ name }) => name.endsWith('reference_logprobs'));
  if (needsReference && reference === undefined) throw new TypeError(`the loss ${loss.name} needs a reference`);
  const steps = train(trainer, { ahead: 2, ...rest, loss } as TrainOptions);
  return (source) => {
    const compared = needsReference ? source.pipe(withReference(reference!, { ahead: referenceAhead })) : source;
    return compared.pipe(steps, plainMetrics());
  };
}
