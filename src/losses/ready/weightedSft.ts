import { defineLoss } from '../defineLoss.js';
import type { TracedLoss } from '../TracedLoss.js';

/** Options of `weightedSft`. */
export interface WeightedSftOptions {
  /** Whether each datum's loss is divided by the sum of its weights, so that long answers count no more than short ones. Default false. */
  readonly perDatum?: boolean;
}

/**
 * Supervised fine-tuning: −Σ w · log p, as the service's `cross_entropy`; with `perDatum`, −Σ w · log p / Σ w.
 *
 * Inputs: `weights`.
 */
export function weightedSft({ perDatum = false }: WeightedSftOptions = {}): TracedLoss {
  return defineLoss(
    ({ logprobs, weights }, ops) =>
      (perDatum ? ops.weightedMean(logprobs, weights) : ops.weightedSum(logprobs, weights)).neg(),
    { name: 'weighted_sft' },
  );
}
