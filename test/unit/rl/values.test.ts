import { lastValueFrom, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { discounted, penalized } from '../../../src/rl/learning/klPenalty.js';
import { forLoss, groupData, valuesOf } from '../../../src/rl/learning/trajectoryData.js';
import { GroupTally } from '../../../src/rl/learning/GroupTally.js';
import { offPolicyMetrics } from '../../../src/rl/learning/toRlStep.js';
import { scored } from '../../../src/rl/learning/scored.js';
import { wholeSequence } from '../../../src/rl/learning/prepareGroup.js';
import {
  advantages,
  type AdvantagesOptions,
  type Group,
  LivePolicy,
  type ScoredGroup,
  type Trajectory,
  type Turn,
} from '../../../src/rl/index.js';
import { TensorData } from '../../../src/wire/tensor.js';
import { groupOf, turnOf } from '../../marbles/fakeLoop.js';

const of1 = (options: AdvantagesOptions, rewards: readonly number[]) => scored(groupOf(0, rewards), options).advantages;
const withTurns = (turns: readonly Turn[], reward = 1): Group<string> => {
  const trajectory: Trajectory = { turns, reward, index: 0, seed: 0, step: 0, durationMs: 1 };
  return groupOf(0, [], { trajectories: [trajectory] });
};

describe('LivePolicy', () => {
  it('keeps the newest weights where older ones come late', () => {
    const policy = new LivePolicy<string>();
    const seen: number[] = [];
    policy.versions$.subscribe(({ step }) => seen.push(step));
    expect([11, 12, 2, 13].map((step) => policy.publish(`weights ${step}`, step))).toStrictEqual([
      ...[true, true, false, true],
    ]);
    expect(seen).toStrictEqual([11, 12, 13]);
    expect(policy.current).toStrictEqual({ sampler: 'weights 13', step: 13 });
  });
});

describe('advantages', () => {
  it('are the reward less the mean of the group, without division', () => {
    expect(of1({}, [1, 0, 0, 1])).toStrictEqual([0.5, -0.5, -0.5, 0.5]);
    expect(of1({}, [3, 1, 2])).toStrictEqual([1, -1, 0]);
  });
  it('by mean and deviation: over the sample deviation', () => {
    // Deviation of 1, 2, 3 is 1.
    expect(of1({ method: 'mean-deviation' }, [1, 2, 3])).toStrictEqual([-1 / 1.0001, 0, 1 / 1.0001]);
  });
  it('by leave-one-out: less the mean of the others', () => {
    expect(of1({ method: 'leave-one-out' }, [1, 2, 6])).toStrictEqual([1 - 4, 2 - 3.5, 6 - 1.5]);
  });
  it('given: the reward itself, or what the turns carry', () => {
    const group = scored(withTurns([turnOf([1], [2, 3], { advantage: [5, 7] }), turnOf([1, 2, 3, 4], [5])], 2), {
      method: 'given',
    });
    expect(group.teaches).toBe(true);
    expect([...valuesOf(groupData(group).data[0]!.datum, 'advantages')]).toStrictEqual([5, 7, 0, 2]);
  });
  it('drop groups with equal rewards, and those with too few rollouts, and pass them on', async () => {
    const constant = await lastValueFrom(of(groupOf(0, [1, 1])).pipe(advantages()));
    expect(constant).toMatchObject({ teaches: false, dropped: 'constant', advantages: [0, 0] });
    expect(scored(groupOf(0, [1, 1]), { keepConstant: true }).teaches).toBe(true);
    expect(scored(groupOf(0, [1, 0], { viable: false })).dropped).toBe('too-few');
    expect(scored(groupOf(0, [])).dropped).toBe('too-few');
  });
  it('per sequence: divided by the tokens trained on, masked ones not counted', () => {
    const turns = [turnOf([1], [2, 3, 4]), turnOf([1, 2, 3, 4, 9], [5, 6], { masked: true })];
    const group = { ...scored(withTurns(turns), { method: 'given', per: 'sequence' }), advantages: [3] };
    expect([...valuesOf(groupData(group).data[0]!.datum, 'advantages')]).toStrictEqual([1, 1, 1, 0, 0, 0]);
  });
  it('can leave out answers that were cut off, whose rewards still count', () => {
    const cut = turnOf([1], [2, 3]);
    const group = groupOf(0, [1, 0]);
    const [first, second] = group.trajectories;
    const trajectories = [
      first!,
      { ...second!, turns: [{ ...cut, sequence: { ...cut.sequence, stopReason: 'length' as const } }] },
    ];
    const made = scored({ ...group, trajectories }, { maskCutOff: true });
    expect(made.advantages).toStrictEqual([0.5, -0.5]);
    expect(groupData(made).data).toHaveLength(1);
  });
});

describe('the datum of three turns', () => {
  const observations = [
    [1, 2, 3, 4, 5],
    [1, 2, 3, 4, 5, 10, 11, 12, 20, 21],
    [1, 2, 3, 4, 5, 10, 11, 12, 20, 21, 30, 31, 40],
  ];
  const actions = [
    [10, 11, 12],
    [30, 31],
    [50, 51, 52],
  ];
  const made = (masked: number, advantage: number) => {
    const turns = observations.map((prompt, index) => turnOf(prompt, actions[index]!, { masked: index === masked }));
    return groupData({ ...scored(withTurns(turns), { method: 'given' }), advantages: [advantage] });
  };

  it('is one, with a mask on what was sampled', () => {
    const { data, splits } = made(-1, 1);
    expect(data).toHaveLength(1);
    expect(splits).toBe(0);
    expect([...data[0]!.mask]).toStrictEqual([0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1]);
    expect([...valuesOf(data[0]!.datum, 'logprobs')]).toStrictEqual([
      0, 0, 0, 0, -1, -1, -1, 0, 0, -1, -1, 0, -1, -1, -1,
    ]);
    expect([...wholeSequence(data[0]!.datum).toInts()]).toStrictEqual([...observations[2]!, ...actions[2]!]);
    expect('sequence_ratio_mask' in forLoss(data[0]!, false).lossFnInputs).toBe(false);
  });
  it('leaves out a masked turn', () => {
    const { data } = made(1, 2);
    expect([...valuesOf(data[0]!.datum, 'advantages')]).toStrictEqual([0, 0, 0, 0, 2, 2, 2, 0, 0, 0, 0, 0, 2, 2, 2]);
    expect([...data[0]!.mask]).toStrictEqual([0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1]);
  });
  it('is two where a prompt does not extend the turn before, with the reason', () => {
    const turns = [turnOf([1, 2], [3, 4]), turnOf([1, 2, 3, 7, 8], [9])];
    const { data, splits, splitReason } = groupData({
      ...scored(withTurns(turns), { method: 'given' }),
      advantages: [1],
    });
    expect(data).toHaveLength(2);
    expect(splits).toBe(1);
    expect(splitReason).toBe('the prompt of turn 2 differs from turn 1 at position 3, token 1 of what was sampled');
  });
});

describe('the KL penalty', () => {
  it('discounts what is to come', () => {
    expect([...discounted(Float32Array.of(1, 2, 3), 0.5)]).toStrictEqual([2.75, 3.5, 3]);
    expect([...discounted(Float32Array.of(1, 2, 3), 0)]).toStrictEqual([1, 2, 3]);
  });
  const data = () =>
    groupData({
      ...scored(withTurns([turnOf([1, 2], [3, 4]), turnOf([1, 2, 3, 4, 5], [6])]), { method: 'given' }),
      advantages: [1],
    }).data;
  // Positions of the whole sequence 1 2 3 4 5 6: nothing predicts the first. Sampled logprobs are −1.
  const reference = [Float32Array.of(NaN, -9, -1.5, -2.5, -9, -1.25)];

  it('adds c · mask · (mean(d) − d)', () => {
    // d is 0.5, 1.5 and 0.25: 0.75 in the mean.
    const { data: penalty, kl } = penalized(data(), reference, 2, 0);
    expect(kl).toBe(0.75);
    expect([...valuesOf(penalty[0]!.datum, 'advantages')]).toStrictEqual([0, 1.5, -0.5, 0, 2]);
  });
  it.each([NaN, -Infinity, undefined])('refuses a reference of %s', (value) => {
    const bad = reference.map((values) => values.with(3, value ?? NaN).subarray(0, value === undefined ? 3 : 6));
    expect(() => penalized(data(), bad, 2, 0)).toThrow(
      `the reference of klPenalty gives token 3 of a sequence a log probability of ${value}`,
    );
  });
  it('adds its discounted future sum to what was sampled, and never trains on what was only read', () => {
    const { data: penalty } = penalized(data(), reference, 2, 0.5);
    // Penalties are 0, 0.5, −1.5, 0, 1; their sums from the back: 1, 0.5, −1.25, −0.125, −0.0625.
    expect([...valuesOf(penalty[0]!.datum, 'advantages')]).toStrictEqual([0, 0.875, -0.25, 0, 2]);
  });
});

const environmentMetrics = (groups: readonly ScoredGroup[]): Record<string, number> => {
  const tally = new GroupTally();
  for (const group of groups) tally.add(group);
  return tally.environment();
};

describe('metrics', () => {
  it('of sampler and trainer go over tokens trained on', () => {
    const { data } = groupData(scored(withTurns([turnOf([1, 2], [3, 4])]), { method: 'given' }));
    const outputs = [{ logprobs: TensorData.from(Float32Array.of(-7, -1.5, -0.75), 'float32') }];
    const metrics = offPolicyMetrics(data, outputs);
    expect(metrics).toMatchObject({
      'optim/kl_sample_train_v1': 0.125,
      'optim/kl_sample_train_v2': (0.25 + 0.0625) / 4,
      'optim/entropy': 1,
      'optim/ratio_p01': Math.exp(-0.5),
      'optim/ratio_max': Math.exp(0.25),
    });
    expect(offPolicyMetrics(data, [])).toStrictEqual({});
  });
  it('of trajectories may be named like a property that every object has', () => {
    const group = groupOf(0, [1, 0]);
    const metrics = JSON.parse('{"constructor":2,"__proto__":4}') as Record<string, number>;
    const trajectories = group.trajectories.map((each) => ({ ...each, metrics }));
    expect(environmentMetrics([scored({ ...group, trajectories })])).toMatchObject({
      'env/all/constructor': 2,
      'env/all/__proto__': 4,
    });
  });
  it('of trajectories are means over all of them, not over those that have the name', () => {
    const group = groupOf(0, [1, 0, 0, 1]);
    const trajectories = group.trajectories.map((each, index) =>
      index === 0 ? { ...each, metrics: { 'stop/length': 1 } } : each,
    );
    expect(environmentMetrics([scored({ ...group, trajectories })])).toMatchObject({
      'env/all/stop/length': 0.25,
      'env/all/reward/total': 0.5,
      'env/all/ac_tokens_per_turn': 2,
      'env/all/ob_tokens_per_turn': 2,
      'env/all/turns_per_episode': 1,
      'env/all/total_episodes': 4,
      'env/all/by_group/frac_mixed': 1,
    });
  });
  it('of a tag are those of its groups, whichever groups were dropped', () => {
    const easy = scored(groupOf(0, [1, 1], { tags: ['easy'] }));
    const hard = scored(groupOf(1, [1, 0], { tags: ['hard'] }));
    const metrics = environmentMetrics([easy, hard]);
    expect(metrics['env/easy/reward/total']).toBe(1);
    expect(metrics['env/hard/reward/total']).toBe(0.5);
    expect(metrics['env/all/reward/total']).toBe(0.75);
    expect(
      Object.keys(environmentMetrics([scored(groupOf(0, [1, 0], { tags: ['all of them'] }))])).some((name) =>
        name.startsWith('env/all of'),
      ),
    ).toBe(false);
  });
});
