import type { CustomLossFn, LossHandle } from '../../client/training/customLoss.js';
import type { TracedLoss } from '../../losses/TracedLoss.js';
import type { LossFnConfig, LossFnType } from '../../wire/training.js';
import type { RlLoss } from './rlLoss.js';

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
