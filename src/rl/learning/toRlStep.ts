import type { Step } from '../../operators/training/step.js';
import type { RlListener } from '../pacing/rlEvent.js';
import type { MadeBatch } from './BatchMaker.js';
import type { RlStep } from './rlStep.js';
import type { TensorData } from '../../wire/tensor.js';
import { type MaskedDatum, valuesOf } from './trajectoryData.js';

/** Root mean square of log ratios above 0.1: several times what rounding makes of them. */
const GAP = 0.005;

/** What `train` gave for a batch, with what the batch was like. */
export function toRlStep<T>(step: Step, batch: MadeBatch<T>, onGap: (metrics: RlStep['metrics']) => void): RlStep<T> {
  const { outputs = [], ...rest } = step;
  const gap = offPolicyMetrics(batch.data, outputs);
  const metrics: Record<string, number> = {
    ...step.metrics,
    ...batch.tally.metrics(step.index),
    ...gap,
    ...(batch.kl.length === 0 ? {} : { kl_policy_base: batch.kl.reduce((sum, kl) => sum + kl, 0) / batch.kl.length }),
    'optim/lr': step.learningRate,
    'datums/split_trajectories': batch.splits,
    'progress/batch': step.index,
  };
  onGap(metrics);
  return { ...rest, metrics, reward: metrics['env/all/reward/total']!, groups: batch.groups };
}

/**
 * Warns, once, where sampler and trainer disagree about a batch that was sampled from the very weights it is trained on.
 * Later batches are not looked at: what they differ by is learning.
 */
export function gapWarning(report: RlListener): (metrics: RlStep['metrics']) => void {
  let looked = false;
  return (metrics) => {
    const v2 = metrics['optim/kl_sample_train_v2'];
    if (looked || v2 === undefined || metrics['policy/age_max'] !== 0) return;
    looked = true;
    if (v2 <= GAP) return;
    report({
      type: 'rl-warning',
      code: 'sampler-trainer-gap',
      message:
        `the sampler and the trainer disagree about the same weights: optim/kl_sample_train_v2 is ${v2.toPrecision(3)} ` +
        `(v1 ${metrics['optim/kl_sample_train_v1']!.toPrecision(3)}) on the first batch, where rounding alone gives less than ${GAP}`,
    });
  };
}

const QUANTILES = { p01: 0.01, p50: 0.5, p99: 0.99, max: 1 };

/**
 * How far the trainer is from the sampler, over all tokens trained on: from the logprobs that the backward pass returns
 * anyway. Empty if it returned none.
 */
export function offPolicyMetrics(
  data: readonly MaskedDatum[],
  outputs: readonly Readonly<Record<string, TensorData>>[],
): Record<string, number> {
  const differences: number[] = [];
  let sampledSum = 0;
  let squares = 0;
  let sum = 0;
  for (const [index, { datum, mask }] of data.entries()) {
    const trained = outputs[index]?.['logprobs']?.data;
    if (trained?.length !== mask.length) return {};
    const sampled = valuesOf(datum, 'logprobs');
    for (let place = 0; place < mask.length; place++) {
      if (mask[place] === 0) continue;
      const difference = sampled[place]! - trained[place]!;
      differences.push(difference);
      sampledSum += sampled[place]!;
      sum += difference;
      squares += difference * difference;
    }
  }
  const tokens = differences.length;
  if (tokens === 0) return {};
  // The ratio is exp(trainer − sampler); sorting its logarithm gives the same order.
  const sorted = Float32Array.from(differences, (difference) => -difference).sort();
  const quantiles = Object.entries(QUANTILES).map(([name, share]) => [
    `optim/ratio_${name}`,
    Math.exp(sorted[Math.min(tokens - 1, Math.floor(share * tokens))]!),
  ]);
  return {
    'optim/kl_sample_train_v1': sum / tokens,
    'optim/kl_sample_train_v2': squares / (2 * tokens),
    'optim/entropy': -sampledSum / tokens,
    ...(Object.fromEntries(quantiles) as Record<string, number>),
  };
}
