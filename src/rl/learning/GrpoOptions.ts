import type { ObservableInput, SchedulerLike } from 'rxjs';
import type { SamplingClient } from '../../client/SamplingClient.js';
import type { CheckpointEveryOptions } from '../../operators/training/checkpointEvery.js';
import type { EvaluateEveryOptions } from '../../operators/training/evaluateEvery.js';
import type { ForwardPasses, Saves, TakesSnapshots, Trainable } from '../../operators/training/Trainable.js';
import type { TrainOptions } from '../../operators/training/train.js';
import type { ModelInput } from '../../wire/modelInput.js';
import type { LivePolicy } from '../pacing/LivePolicy.js';
import type { RlListener } from '../pacing/rlEvent.js';
import type { AdvantagesOptions } from './advantages.js';
import type { RlLoss } from './rlLoss.js';
import type { RlResume } from './rlStep.js';

/** What the KL penalty asks for log probabilities. A `SamplingClient` is one. */
export interface Reference {
  /** The logprob of each prompt token, as `SamplingClient.computeLogprobs` returns it. */
  computeLogprobs(prompt: ModelInput): ObservableInput<Float32Array>;
}

/** A penalty for moving away from a reference model. */
export interface KlPenaltyOptions {
  /** The model to stay close to: a sampling client of the base model, mostly. */
  readonly reference: Reference;
  /** c in advantage += c · mask · (mean(d) − d), where d is the sampled minus the reference log probability: ≥ 0. */
  readonly coefficient: number;
  /** γ: with one above 0, each token gets the discounted sum of the penalties from it on. From 0 to 1, default 0. */
  readonly discount?: number;
  /** How many sequences of a group are scored at once: an integer ≥ 1. Default 64. */
  readonly concurrency?: number;
}

/** What `grpo` needs of a trainer: to train, and what its options ask for. A `TrainingClient` is one. */
export type RlTrainer<S = SamplingClient> = Trainable & Partial<TakesSnapshots<S> & Saves & ForwardPasses>;

/** Options of `grpo`. */
export interface GrpoOptions<S = SamplingClient> {
  /** What `rollouts` samples from; new weights are published to it after every step. Default: groups come from elsewhere, and no weights are published. */
  readonly policy?: LivePolicy<S>;
  /** How many groups make a batch, which is a step: an integer ≥ 1. */
  readonly groupsPerBatch: number;
  /** Default `importance_sampling`. */
  readonly loss?: RlLoss;
  /** Adam's parameters; the learning rate may follow a schedule. Default: betas 0.9 and 0.95, eps 1e-8, a rate of 1e-4. */
  readonly adam?: NonNullable<TrainOptions['adam']>;
  /** Another optimizer family, instead of `adam`; `type` is its name. */
  readonly optimizer?: NonNullable<TrainOptions['optimizer']>;
  /** In how many parts a batch is trained on, each with its own optimizer step: an integer ≥ 1. Default 1. */
  readonly substeps?: number;
  /**
   * How many steps the weights may be ahead of those that sampled a group when it is trained on: an integer ≥ 0. A step is one
   * batch, also where `substeps` makes several optimizer steps of it. 0 (default) is synchronous; above, sampling and training overlap.
   */
  readonly maxStepsOffPolicy?: number;
  /**
   * In how many parts a batch is trained on, each as soon as its groups are there, with one optimizer step for all: an integer
   * ≥ 1. Default 1. Backward passes then run while later groups are still sampled.
   */
  readonly minibatches?: number;
  /** Whether groups that teach nothing are made up for by further tasks, so that batches are always full. Default: no, batches are smaller. */
  readonly refill?: boolean;
  /** For groups that come without advantages. */
  readonly advantages?: AdvantagesOptions;
  /** Penalty for leaving a reference model. Default: none. */
  readonly klPenalty?: KlPenaltyOptions;
  /** Trains on samples of another distribution than the model's own (a temperature, top-p, top-k) all the same. Default: an error. */
  readonly acceptAlteredSampling?: boolean;
  /** Checkpoints, right after their steps. Default: none. `atEnd` saves after the last step too. */
  readonly checkpoint?: CheckpointEveryOptions;
  /** Evaluations of the weights right after a step, while training continues. Default: none. */
  readonly evaluate?: EvaluateEveryOptions<S>;
  /** Ends the run after this many optimizer steps, those before a resume included: an integer ≥ 1. Default: with its source. */
  readonly steps?: number;
  /**
   * Ends the run once it emits: nothing more is sampled, batches in training are finished, and `checkpoint.atEnd` saves. The groups of a batch
   * that is not full are not trained on; a resumed run takes them again, and so ends as one that was never stopped. Default: never.
   */
  readonly stop$?: ObservableInput<unknown>;
  /** Where an earlier run stopped; give the same to `rollouts`. */
  readonly resume?: RlResume | undefined;
  /** Told of every wait, of batches without a lesson, and of warnings. Default: warnings are printed on stderr. */
  readonly onEvent?: RlListener | undefined;
  /** For durations and expiry times. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}
