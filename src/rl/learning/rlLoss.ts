import type { CustomLossFn, LossHandle } from '../../client/training/customLoss.js';
import type { TracedLoss } from '../../losses/TracedLoss.js';
import type { LossFnConfig, LossFnType } from '../../wire/training.js';

/** Bounds of the ratio itself, not of its distance from 1. */
export interface ClipBounds {
  /** Default 0.8. */
  readonly low?: number;
  /** Default 1.2. */
  readonly high?: number;
}

/**
 * A loss for sampled tokens. All but a custom one use the ratio of the trainer's and the sampler's probabilities.
 *
 * - `importance_sampling`: ratio × advantage
 * - `ppo`, `cispo`, `gspo`: with the ratio clipped, for gspo that of whole sequences
 * - `dro`: with a quadratic penalty of strength `beta` on the distance
 * - a function in closed form, a loss recorded by `defineLoss`, or the handle of an uploaded one
 */
export type RlLoss =
  | 'importance_sampling'
  | 'ppo'
  | 'cispo'
  | 'gspo'
  | {
      /** A loss with clip bounds. */
      readonly name: 'ppo' | 'cispo' | 'gspo';
      /** Its clip bounds. */
      readonly clip: ClipBounds;
    }
  | {
      /** The loss with a quadratic penalty. */
      readonly name: 'dro';
      /** The penalty's weight. */
      readonly beta: number;
    }
  | CustomLossFn
  | LossHandle
  | TracedLoss;

/** The loss as `train` takes it. */
export function lossOptions(loss: RlLoss): {
  readonly loss: LossFnType | CustomLossFn | LossHandle | TracedLoss;
  readonly lossFnConfig?: LossFnConfig;
} {
  if (typeof loss === 'string' || typeof loss === 'function') return { loss };
  if ('clip' in loss) {
    const { low, high } = loss.clip;
    if (low !== undefined && !(low >= 0 && low <= 1)) throw new RangeError(`clip.low must be from 0 to 1, got ${low}`);
    if (high !== undefined && !(high >= 1)) throw new RangeError(`clip.high must be >= 1, got ${high}`);
    return {
      loss: loss.name,
      lossFnConfig: {
        ...(low === undefined ? {} : { clip_low_threshold: low }),
        ...(high === undefined ? {} : { clip_high_threshold: high }),
      },
    };
  }
  if ('beta' in loss) {
    if (!(loss.beta >= 0 && loss.beta < Infinity)) throw new RangeError(`beta must be >= 0, got ${loss.beta}`);
    return { loss: loss.name, lossFnConfig: { beta: loss.beta } };
  }
  return { loss };
}
