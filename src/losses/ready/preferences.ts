import { checkAtLeast } from '../../support/checks.js';
import { definePairLoss, type PairInputs } from '../definePairLoss.js';
import type { LossInputs } from '../defineLoss.js';
import type { LossOps } from '../trace/ops.js';
import type { LossReturn } from '../trace/record.js';
import type { Tensor } from '../trace/Tensor.js';
import type { TracedLoss } from '../TracedLoss.js';

/** What every preference loss reports, as means over the pairs. */
function reported(name: string, loss: Tensor, chosen: Tensor, rejected: Tensor): LossReturn {
  return {
    loss,
    metrics: {
      [`${name}_loss`]: loss,
      accuracy: chosen.gt(rejected).float(),
      margin: chosen.sub(rejected),
      chosen_reward: chosen,
      rejected_reward: rejected,
    },
  };
}

/** log π(y) − log π_ref(y): how much likelier an answer is than under the reference. */
const ratio = ({ logprobs, weights, reference_logprobs: reference }: LossInputs, ops: LossOps): Tensor =>
  ops.weightedSum(logprobs.sub(reference), weights);

const ratios = ({ chosen, rejected }: PairInputs, ops: LossOps) => [ratio(chosen, ops), ratio(rejected, ops)] as const;

/** Options of `dpo`. */
export interface DpoOptions {
  /** How strongly the model is held to the reference: a number > 0. Default 0.1. */
  readonly beta?: number;
  /** How often a preference is taken to be the wrong way round: from 0 to below 0.5. Default 0. */
  readonly labelSmoothing?: number;
}

/**
 * Direct preference optimization: −(1 − ε) · log σ(β · (h_w − h_l)) − ε · log σ(−β · (h_w − h_l)), with h = Σ w · (log p − log p_ref) of the chosen (w)
 * and the rejected (l) answer, and ε the label smoothing. Averaged over the pairs.
 *
 * Inputs, of both sides: `weights` (1 on the answer) and `reference_logprobs`. Reports `dpo_loss`, `accuracy`, `margin`, `chosen_reward` and
 * `rejected_reward` as `custom/…:mean`; a reward is β · h.
 */
export function dpo({ beta = 0.1, labelSmoothing = 0 }: DpoOptions = {}): TracedLoss {
  positive('beta', beta);
  if (!(labelSmoothing >= 0 && labelSmoothing < 0.5))
    throw new RangeError(`labelSmoothing must be from 0 to below 0.5, got ${labelSmoothing}`);
  return definePairLoss(
    (pair, ops) => {
      const [chosen, rejected] = ratios(pair, ops).map((each) => each.mul(beta)) as [Tensor, Tensor];
      const margin = chosen.sub(rejected);
      const right = margin.logSigmoid().mul(labelSmoothing - 1);
      const loss = labelSmoothing === 0 ? right : right.sub(margin.neg().logSigmoid().mul(labelSmoothing));
      return reported('dpo', loss, chosen, rejected);
    },
    { name: 'dpo' },
  );
}

/** Options of `ipo`. */
export interface IpoOptions {
  /** How strongly the model is held to the reference: a number > 0. Default 0.1. */
  readonly beta?: number;
}

/**
 * Identity preference optimization: (h_w − h_l − 1 / (2β))², with h as in {@link dpo}. It aims at a margin instead of ever larger ones.
 *
 * Inputs and reports as {@link dpo}, under `ipo_loss`.
 */
export function ipo({ beta = 0.1 }: IpoOptions = {}): TracedLoss {
  positive('beta', beta);
  return definePairLoss(
    (pair, ops) => {
      const [chosen, rejected] = ratios(pair, ops);
      const loss = chosen
        .sub(rejected)
        .sub(1 / (2 * beta))
        .square();
      return reported('ipo', loss, chosen.mul(beta), rejected.mul(beta));
    },
    { name: 'ipo' },
  );
}

/** The mean logprob of an answer's tokens. */
const meanLogprob = ({ logprobs, weights }: LossInputs, ops: LossOps): Tensor => ops.weightedMean(logprobs, weights);

/** Options of `simpo`. */
export interface SimpoOptions {
  /** How much a difference in mean logprobs counts: a number > 0. Default 2. */
  readonly beta?: number;
  /** By how much the chosen answer should be ahead: a number ≥ 0. Default 1. */
  readonly gamma?: number;
}

/**
 * Simple preference optimization, without a reference: −log σ(β · (m_w − m_l) − γ), with m = Σ w · log p / Σ w, the mean logprob of the answer's tokens.
 *
 * Inputs, of both sides: `weights`. Reports as {@link dpo}, under `simpo_loss`; a reward is β · m.
 */
export function simpo({ beta = 2, gamma = 1 }: SimpoOptions = {}): TracedLoss {
  positive('beta', beta);
  checkAtLeast({ gamma }, 0);
  return definePairLoss(
    ({ chosen, rejected }, ops) => {
      const [better, worse] = [meanLogprob(chosen, ops).mul(beta), meanLogprob(rejected, ops).mul(beta)];
      return reported('simpo', better.sub(worse).sub(gamma).logSigmoid().neg(), better, worse);
    },
    { name: 'simpo' },
  );
}

/** Options of `orpo`. */
export interface OrpoOptions {
  /** How much the preference counts beside the supervised loss: a number > 0. Default 0.1. */
  readonly lambda?: number;
}

/** Mean logprobs above this are taken for it: at 0 the odds are infinite. */
const MOST = -1e-6;

/**
 * Odds-ratio preference optimization, without a reference: −m_w − λ · log σ(o_w − o_l), with m the mean logprob of the answer's tokens, as in {@link simpo}, and
 * o = m − log(1 − eᵐ) the log odds. The first part is supervised fine-tuning on the chosen answers.
 *
 * Inputs, of both sides: `weights`. Reports as {@link dpo}, under `orpo_loss`; a reward is λ · m.
 */
export function orpo({ lambda = 0.1 }: OrpoOptions = {}): TracedLoss {
  positive('lambda', lambda);
  return definePairLoss(
    ({ chosen, rejected }, ops) => {
      const [better, worse] = [meanLogprob(chosen, ops), meanLogprob(rejected, ops)];
      const logOdds = (mean: Tensor): Tensor => {
        const below = mean.clamp({ max: MOST });
        return below.sub(below.exp().neg().log1p());
      };
      const preference = logOdds(better).sub(logOdds(worse)).logSigmoid();
      const loss = better.neg().sub(preference.mul(lambda));
      return reported('orpo', loss, better.mul(lambda), worse.mul(lambda));
    },
    { name: 'orpo' },
  );
}

function positive(name: string, value: number): void {
  if (!(value > 0)) throw new RangeError(`${name} must be > 0, got ${value}`);
}
