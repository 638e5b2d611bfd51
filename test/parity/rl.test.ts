import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { discounted, penalized } from '../../src/rl/learning/klPenalty.js';
import { GroupTally } from '../../src/rl/learning/GroupTally.js';
import { offPolicyMetrics } from '../../src/rl/learning/toRlStep.js';
import { scored } from '../../src/rl/learning/scored.js';
import { groupData, valuesOf } from '../../src/rl/learning/trajectoryData.js';
import type { ScoredGroup, Trajectory } from '../../src/rl/index.js';
import { ModelInput } from '../../src/wire/modelInput.js';
import { TensorData } from '../../src/wire/tensor.js';

interface Recorded {
  readonly groups: readonly {
    readonly rewards: readonly number[];
    readonly tags: readonly string[];
    readonly episodes: readonly (readonly {
      readonly prompt: readonly number[];
      readonly tokens: readonly number[];
      readonly logprobs: readonly number[];
      readonly masked: boolean;
    }[])[];
  }[];
  readonly advantages: readonly (readonly number[])[];
  readonly masks: readonly (readonly number[])[];
  readonly token_advantages: readonly (readonly number[])[];
  readonly trained: readonly (readonly number[])[];
  readonly kl_sample_train: Readonly<Record<string, number>>;
  readonly penalties: readonly {
    readonly coefficient: number;
    readonly discount: number;
    readonly reference: readonly (readonly number[])[];
    readonly advantages: readonly (readonly number[])[];
    readonly kl_policy_base: number;
  }[];
  readonly discounted: readonly number[];
  readonly metrics: Readonly<Record<string, number>>;
}
/** Recorded by rl_golden.py from the public cookbook. */
const recorded = JSON.parse(readFileSync(new URL('recorded/rl.json', import.meta.url), 'utf8')) as Recorded;

const groups = recorded.groups.map(({ rewards, tags, episodes }, order): ScoredGroup => {
  const trajectories = episodes.map((turns, index): Trajectory => ({
    ...{ reward: rewards[index]!, index, seed: 0, step: 0, durationMs: 1 },
    turns: turns.map(({ prompt, tokens, logprobs, masked }) => ({
      prompt: ModelInput.fromInts(prompt),
      sequence: { stopReason: 'stop', tokens: Int32Array.from(tokens), logprobs: Float32Array.from(logprobs) },
      masked,
    })),
  }));
  const group = { task: '', order, trajectories, failures: [], viable: true, tags, durationMs: 1 };
  return scored(group, { keepConstant: true });
});
const data = groups.flatMap((group) => groupData(group).data);
const close = (actual: Float32Array, expected: readonly number[]) => {
  expect(actual).toHaveLength(expected.length);
  expected.forEach((value, place) => expect(actual[place]).toBeCloseTo(value, 5));
};

describe('reinforcement learning beside the public cookbook', () => {
  it('advantages', () => {
    groups.forEach(({ advantages }, index) => close(Float32Array.from(advantages), recorded.advantages[index]!));
  });
  it('masks and advantages of tokens, with a masked turn', () => {
    expect(data.map(({ mask }) => [...mask])).toStrictEqual(recorded.masks);
    data.forEach(({ datum }, index) => close(valuesOf(datum, 'advantages'), recorded.token_advantages[index]!));
  });
  it('KL of sampler and trainer, and entropy', () => {
    const outputs = recorded.trained.map((values) => ({ logprobs: TensorData.from(values, 'float32') }));
    const metrics = offPolicyMetrics(data, outputs);
    for (const [name, value] of Object.entries(recorded.kl_sample_train)) expect(metrics[name]).toBeCloseTo(value, 5);
    expect(Object.keys(recorded.kl_sample_train)).toHaveLength(3);
  });
  it.each(recorded.penalties)('the KL penalty with coefficient $coefficient and discount $discount', (penalty) => {
    const reference = penalty.reference.map((values) => Float32Array.from(values));
    const { data: penalties, kl } = penalized(data, reference, penalty.coefficient, penalty.discount);
    expect(kl).toBeCloseTo(penalty.kl_policy_base, 5);
    // The cookbook also gives the discounted sum to tokens that were only read, and so trains on them; here they stay at 0.
    penalties.forEach(({ datum, mask }, index) => {
      const sampled = penalty.advantages[index]!.map((value, place) => value * mask[place]!);
      close(valuesOf(datum, 'advantages'), sampled);
    });
  });
  it('discounted sums', () => {
    expect([...discounted(Float32Array.of(1, 2, 3), 0.5)]).toStrictEqual(recorded.discounted);
  });
  it('metrics of trajectories, for all and by tag', () => {
    const tally = new GroupTally();
    for (const group of groups) tally.add(group);
    const metrics = tally.environment();
    for (const [name, value] of Object.entries(recorded.metrics)) expect(metrics[name], name).toBeCloseTo(value, 6);
    expect(Object.keys(metrics).sort()).toStrictEqual(Object.keys(recorded.metrics).sort());
  });
});
