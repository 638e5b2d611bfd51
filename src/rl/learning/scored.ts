import type { AdvantagesOptions, ScoredGroup } from './advantages.js';
import type { DropReason } from '../pacing/rlEvent.js';
import type { Group, Trajectory } from '../sampling/rollout.js';

/** The group with its advantages. */
export function scored<T>(group: Group<T>, options: AdvantagesOptions = {}): ScoredGroup<T> {
  const { method = 'mean', per = 'token', keepConstant = false, maskCutOff = false } = options;
  const rewards = group.trajectories.map(({ reward }) => reward);
  const values = ADVANTAGES[method](rewards);
  const given = method === 'given';
  const dropped = dropReason(
    group,
    given ? hasNonZeroAdvantage(group.trajectories, values) : differ(rewards),
    keepConstant,
  );
  return {
    ...group,
    advantages: values,
    teaches: dropped === undefined,
    ...(dropped === undefined ? {} : { dropped }),
    scoring: { given, perSequence: per === 'sequence', maskCutOff },
  };
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

const centred = (rewards: readonly number[]): number[] => {
  const middle = mean(rewards);
  return rewards.map((reward) => reward - middle);
};

const ADVANTAGES: Readonly<
  Record<NonNullable<AdvantagesOptions['method']>, (rewards: readonly number[]) => readonly number[]>
> = {
  mean: centred,
  'mean-deviation': (rewards) => {
    const values = centred(rewards);
    const deviation = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / Math.max(1, values.length - 1));
    return values.map((value) => value / (deviation + 1e-4));
  },
  'leave-one-out': (rewards) => {
    const others = Math.max(1, rewards.length - 1);
    return centred(rewards).map((value) => (value * rewards.length) / others);
  },
  given: (rewards) => rewards,
};

const differ = (rewards: readonly number[]): boolean => rewards.some((reward) => reward !== rewards[0]);

/** Whether any advantage that is given is not 0. */
function hasNonZeroAdvantage(trajectories: readonly Trajectory[], values: readonly number[]): boolean {
  return trajectories.some(({ turns }, index) =>
    turns.some(({ advantage = values[index]! }) =>
      typeof advantage === 'number' ? advantage !== 0 : Array.from(advantage).some((each) => each !== 0),
    ),
  );
}

function dropReason(group: Group, teaches: boolean, keepConstant: boolean): DropReason | undefined {
  if (!group.viable || group.trajectories.length === 0) return 'too-few';
  return teaches || keepConstant ? undefined : 'constant';
}
