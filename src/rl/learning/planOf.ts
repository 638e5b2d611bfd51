import type { SchedulerLike } from 'rxjs';
import { checkIntegers } from '../../support/checks.js';
import type { TrainOptions } from '../../operators/training/train.js';
import type { LivePolicy } from '../pacing/LivePolicy.js';
import type { GrpoOptions, KlPenaltyOptions } from './GrpoOptions.js';
import { lossOptions } from './rlLoss.js';
import type { RlResume } from './rlStep.js';

const ADAM = { beta1: 0.9, beta2: 0.95, eps: 1e-8 };

/** The options of `grpo` with their defaults. */
export interface Plan<S> {
  readonly policy: LivePolicy<S> | undefined;
  readonly klPenalty: KlPenaltyOptions | undefined;
  readonly resume: RlResume | undefined;
  readonly groupsPerBatch: number;
  readonly maxStepsOffPolicy: number;
  readonly minibatches: number;
  readonly substeps: number;
  readonly refill: boolean;
  readonly acceptAlteredSampling: boolean;
  readonly loss: ReturnType<typeof lossOptions>;
  /** Whether the loss takes the mask of what was sampled. */
  readonly keepsMask: boolean;
  readonly train: {
    readonly scheduler?: SchedulerLike;
    readonly substeps: number;
  } & (
    | { readonly adam: NonNullable<TrainOptions['adam']> }
    | { readonly optimizer: NonNullable<TrainOptions['optimizer']> }
  );
}

/** @throws RangeError for one that is out of range */
export function planOf<S>(options: GrpoOptions<S>): Plan<S> {
  const { policy, groupsPerBatch, maxStepsOffPolicy = 0, minibatches = 1, substeps = 1, refill = false } = options;
  const { acceptAlteredSampling = false, klPenalty, resume, adam, optimizer, scheduler } = options;
  checkIntegers({ groupsPerBatch, minibatches, substeps }, 1);
  checkIntegers({ maxStepsOffPolicy }, 0);
  if (options.steps !== undefined) checkIntegers({ steps: options.steps }, 1);
  if (minibatches > groupsPerBatch) {
    throw new RangeError(`minibatches must be <= groupsPerBatch (${groupsPerBatch}), got ${minibatches}`);
  }
  if (adam !== undefined && optimizer !== undefined) throw new RangeError('adam and optimizer cannot both be given');
  if (minibatches > 1 && substeps > 1) throw new RangeError('minibatches and substeps cannot both be above 1');
  if (klPenalty !== undefined) {
    const { coefficient, discount = 0 } = klPenalty;
    if (!(coefficient >= 0 && coefficient < Infinity))
      throw new RangeError(`klPenalty.coefficient must be a number >= 0, got ${coefficient}`);
    if (!(discount >= 0 && discount <= 1))
      throw new RangeError(`klPenalty.discount must be from 0 to 1, got ${discount}`);
  }
  const loss = lossOptions(options.loss ?? 'importance_sampling');
  return {
    policy,
    groupsPerBatch,
    maxStepsOffPolicy,
    minibatches,
    substeps,
    refill,
    acceptAlteredSampling,
    klPenalty,
    resume,
    loss,
    keepsMask: loss.loss === 'gspo' || typeof loss.loss !== 'string',
    train: {
      ...(optimizer === undefined ? { adam: { ...ADAM, ...adam } } : { optimizer }),
      ...(scheduler === undefined ? {} : { scheduler }),
      substeps,
    },
  };
}
