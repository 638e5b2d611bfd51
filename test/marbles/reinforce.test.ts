import { from, map } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { flow$ } from '../../src/operators/index.js';
import {
  advantages,
  groupRewards,
  grpo,
  LivePolicy,
  reinforce,
  type ReinforceOptions,
  type RlStep,
  rollouts,
} from '../../src/rl/index.js';
import { keepsContract } from './contract.js';
import { alternating, fakeLoop, type LoopSampler } from './fakeLoop.js';
import { instantAgent, instantTrainer } from './instantLoop.js';
import { marbles } from './marbles.js';

const tasks = (count: number) => from(Array.from({ length: count }, (_, index) => `task ${index}`));
const told = map(({ index, reward, groups }: RlStep) => [index, reward, groups.map(({ order }) => order)]);

describe('reinforce', () => {
  keepsContract({
    operator: () => reinforce(instantTrainer, instantAgent, { group: 2, groupsPerBatch: 1 }),
    // One task is read ahead.
    readsForThree: 5,
  });

  it(
    'is the three operators around one policy',
    marbles((m) => {
      const loop = () => fakeLoop({ stepMs: 4, sampleMs: (asked) => 1 + (asked % 3) }).trainer;
      const options = { group: 2, groupsPerBatch: 2, maxStepsOffPolicy: 1, seed: 3 };
      const policy = new LivePolicy<LoopSampler>();
      const byHand = tasks(8).pipe(
        rollouts<string, LoopSampler>(alternating, { ...options, policy }),
        groupRewards((trajectories) => trajectories.map((_, index) => index / 4)),
        advantages({ method: 'leave-one-out' }),
        grpo<string, LoopSampler>(loop(), { ...options, policy }),
        told,
      );
      const inOne = tasks(8).pipe(
        reinforce(loop(), alternating, {
          ...options,
          groupReward: (trajectories) => trajectories.map((_, index) => index / 4),
          advantages: { method: 'leave-one-out' },
        }),
        told,
      );
      m.scheduler.expectObservable(inOne).toEqual(byHand);
    }),
  );

  it('shows its sampling, judging and training in flow$', () => {
    const names: string[] = [];
    const watching = flow$.subscribe((reports) => names.push(...reports.map(({ name }) => name)));
    const groupReward = (trajectories: readonly unknown[]) => trajectories.map((_, index) => index);
    const run = reinforce(instantTrainer, instantAgent, { group: 2, groupsPerBatch: 1, groupReward });
    tasks(2).pipe(run).subscribe();
    watching.unsubscribe();
    expect(names).toStrictEqual(['train', 'group rewards', 'rollouts']);
  });

  it('checks options at the call, before anything is subscribed to', () => {
    const wrong = (options: Partial<ReinforceOptions<string, LoopSampler>>) => () =>
      reinforce(fakeLoop().trainer, alternating, { group: 2, groupsPerBatch: 1, ...options });
    expect(wrong({ group: 0 })).toThrow('group must be an integer >= 1, got 0');
    expect(wrong({ groupsPerBatch: 0.5 })).toThrow('groupsPerBatch must be an integer >= 1, got 0.5');
    expect(wrong({ klPenalty: { coefficient: 1, discount: 2, reference: undefined as never } })).toThrow(
      'klPenalty.discount must be from 0 to 1, got 2',
    );
    const { saveWeightsAndGetSamplingClient: _, ...unable } = fakeLoop().trainer;
    expect(() => reinforce(unable, alternating, { group: 2, groupsPerBatch: 1 })).toThrow(
      'saveWeightsAndGetSamplingClient',
    );
  });
});
