import type { DashboardGroup } from '../../state/changes.js';

export type GroupKind = '' | 'teaches' | 'dropped' | 'failed';
export type GroupOrder = 'newest' | 'best' | 'worst' | 'oldest';

export interface GroupQuestion {
  /** '' for any. */
  readonly run: string;
  readonly kind: GroupKind;
  readonly order: GroupOrder;
}

/** The groups that answer a question, in its order; those without a value come last. */
export function selectGroups(groups: readonly DashboardGroup[], { run, kind, order }: GroupQuestion): DashboardGroup[] {
  const found = groups.filter((group) => (run === '' || group.run === run) && isOf(group, kind));
  const by = (value: (group: DashboardGroup) => number) =>
    found.sort((a, b) => (Number.isNaN(value(a)) ? 1 : Number.isNaN(value(b)) ? -1 : value(b) - value(a)));
  switch (order) {
    case 'newest':
      return found.reverse();
    case 'best':
      return by(meanReward);
    case 'worst':
      return by((group) => -meanReward(group));
    case 'oldest':
      return by(ageOf);
  }
}

function isOf({ dropped, tries }: DashboardGroup, kind: GroupKind): boolean {
  if (kind === 'failed') return tries.some(({ error }) => error !== undefined);
  return kind === '' || (kind === 'dropped') === (dropped !== undefined);
}

/** NaN if no try has one. */
export function meanReward({ tries }: DashboardGroup): number {
  const rewards = tries.flatMap(({ reward }) => (reward === undefined ? [] : [reward]));
  return rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
}

/** How many steps newer the weights were that the group was trained with than those its oldest try came from. */
export function ageOf({ step, tries }: DashboardGroup): number {
  const sampled = tries.flatMap(({ sampledAt }) => (sampledAt === undefined ? [] : [sampledAt]));
  return sampled.length === 0 ? NaN : step - Math.min(...sampled);
}

/** Failures that say the same, the most frequent first. */
export function failuresIn(groups: readonly DashboardGroup[]): {
  readonly error: string;
  readonly count: number;
  readonly last: DashboardGroup;
}[] {
  const found = new Map<string, { count: number; last: DashboardGroup }>();
  for (const group of groups) {
    for (const { error } of group.tries) {
      if (error !== undefined) found.set(error, { count: (found.get(error)?.count ?? 0) + 1, last: group });
    }
  }
  return [...found].map(([error, seen]) => ({ error, ...seen })).sort((a, b) => b.count - a.count);
}
