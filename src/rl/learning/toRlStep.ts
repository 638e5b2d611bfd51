import type { Step } from '../../operators/step.js';
import type { RlListener } from '../pacing/rlEvent.js';
import type { MadeBatch } from './BatchMaker.js';
import { offPolicyMetrics } from './offPolicyMetrics.js';
import type { RlStep } from './rlStep.js';

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
