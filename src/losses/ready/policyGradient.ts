import { checkAtLeast } from '../../support/checks.js';
import { defineLoss } from '../defineLoss.js';
import type { TracedLoss } from '../TracedLoss.js';

/**
 * The policy gradient with importance weights, unclipped: −Σ r · A with r = exp(log p − log q), as the service's
 * `importance_sampling`. q are the logprobs the tokens were sampled with.
 *
 * Inputs: `advantages`, `old_logprobs`. Reports `custom/kl_old:sum`, Σ over all positions of log q − log p.
 */
export function policyGradient(): TracedLoss {
  return defineLoss(
    ({ logprobs, old_logprobs: old, advantages }, ops) => ({
      loss: ops.weightedSum(logprobs.sub(old).exp(), advantages).neg(),
      metrics: { 'kl_old:sum': old.sub(logprobs.detach()).sum() },
    }),
    { name: 'policy_gradient' },
  );
}

/** Options of `clippedPolicyGradient`. */
export interface ClippedPolicyGradientOptions {
  /** The smallest ratio that is still followed: from 0 to 1. Default 0.8. */
  readonly low?: number;
  /** The largest ratio that is still followed: at least 1. Default 1.2. */
  readonly high?: number;
}

/**
 * The clipped policy gradient: −Σ min(r · A, clamp(r, low, high) · A) with r = exp(log p − log q), as the service's `ppo`.
 *
 * Inputs: `advantages`, `old_logprobs`. Reports `custom/clipped:sum`, at how many positions the clip decides.
 */
export function clippedPolicyGradient({ low = 0.8, high = 1.2 }: ClippedPolicyGradientOptions = {}): TracedLoss {
  if (!(low >= 0 && low <= 1)) throw new RangeError(`low must be from 0 to 1, got ${low}`);
  checkAtLeast({ high }, 1);
  return defineLoss(
    ({ logprobs, old_logprobs: old, advantages }) => {
      const ratio = logprobs.sub(old).exp();
      const [free, clipped] = [ratio.mul(advantages), ratio.clamp({ min: low, max: high }).mul(advantages)];
      return {
        loss: free.minimum(clipped).sum().neg(),
        metrics: { 'clipped:sum': clipped.lt(free).float().sum() },
      };
    },
    { name: 'clipped_policy_gradient' },
  );
}
