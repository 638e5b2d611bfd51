import { checkAtLeast, checkFinite } from '../../support/checks.js';
import { addLosses } from '../addLosses.js';
import { defineLoss } from '../defineLoss.js';
import type { TracedLoss } from '../TracedLoss.js';

/** Options of every regularizer. */
export interface RegularizerOptions {
  /** How much it counts beside the loss it is added to: a number ≥ 0. */
  readonly coefficient: number;
}
/** Options of `klToReference`. */
export interface KlOptions extends RegularizerOptions {
  /**
   * `k2` (default), ½ d² with d = log p − log p_ref: on tokens the model sampled itself, its gradient is on average that of the KL divergence. `k3`, eᵈ′ − 1 − d′ with d′ = −d, as GRPO
   * has it: never negative, and its value is on average the divergence itself.
   */
  readonly estimator?: 'k2' | 'k3';
}

/**
 * KL divergence to a reference, per token: c · Σ mask · k(log p − log p_ref), with k as {@link KlOptions} says.
 *
 * Inputs: `reference_logprobs`, and `mask` (else `weights`). Reports `custom/kl_reference:mean`, the mean of d over the mask.
 */
export function klToReference({ coefficient, estimator = 'k2' }: KlOptions): TracedLoss {
  check(coefficient);
  return defineLoss(
    ({ logprobs, reference_logprobs: reference, mask }, ops) => {
      const away = logprobs.sub(reference);
      const each = estimator === 'k2' ? away.square().mul(0.5) : away.neg().expm1().add(away);
      return {
        loss: ops.weightedSum(each, mask).mul(coefficient),
        metrics: { kl_reference: ops.weightedMean(away.detach(), mask) },
      };
    },
    { name: `kl_${estimator}` },
  );
}

/**
 * Squared distance to a reference, in logprobs: c · Σ mask · (log p − log p_ref)². For L2 on the weights
 * themselves, which no loss can see, use the optimizer's `weightDecay`.
 *
 * Inputs: `reference_logprobs`, and `mask` (else `weights`).
 */
export function l2ToReference({ coefficient }: RegularizerOptions): TracedLoss {
  check(coefficient);
  return defineLoss(
    ({ logprobs, reference_logprobs: reference, mask }, ops) =>
      ops.weightedSum(logprobs.sub(reference).square(), mask).mul(coefficient),
    { name: 'l2_reference' },
  );
}

/**
 * A bonus for entropy, on tokens the model sampled itself: the value is c · Σ mask · log p, which is on average −c times the entropy, and the gradient by
 * each log p is c · mask · log p, which is on average that of the value (the plain derivative would be 0 on average).
 *
 * Inputs: `mask` (else `weights`). Reports `custom/entropy:mean`, −Σ mask · log p / Σ mask.
 */
export function entropyBonus({ coefficient }: RegularizerOptions): TracedLoss {
  check(coefficient);
  return defineLoss(
    ({ logprobs, mask }, ops) => {
      const value = ops.weightedSum(logprobs, mask);
      const gradient = ops.weightedSum(logprobs.square(), mask).mul(0.5);
      return {
        loss: ops.withGradientOf(value, gradient).mul(coefficient),
        metrics: { entropy: ops.weightedMean(logprobs.detach(), mask).neg() },
      };
    },
    { name: 'entropy_bonus' },
  );
}

/** A loss, and {@link klToReference} added to it. */
export function klRegularized(loss: TracedLoss, options: KlOptions): TracedLoss {
  return addLosses(loss, klToReference(options));
}

function check(coefficient: number): void {
  checkFinite({ coefficient });
  checkAtLeast({ coefficient }, 0);
}
