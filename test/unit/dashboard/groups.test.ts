import { describe, expect, it } from 'vitest';
import { failuresIn, selectGroups } from '../../../src/dashboard/page/rollouts/selectGroups.js';
import { groupChanges } from '../../../src/dashboard/server/groupChanges.js';
import type { DashboardGroup } from '../../../src/dashboard/state/changes.js';
import { DashboardState } from '../../../src/dashboard/state/DashboardState.js';
import { Groups } from '../../../src/dashboard/state/Groups.js';
import { rolloutRecords } from '../../../src/rl/log/rolloutRecords.js';
import { scored } from '../../../src/rl/learning/scored.js';
import { groupOf, turnOf } from '../../marbles/fakeLoop.js';

const failures = [{ index: 2, name: 'TimeoutError', message: 'too slow', attempts: 1 }];
const trajectories = groupOf(0, [1, 0]).trajectories.map((trajectory, index) => ({
  ...trajectory,
  turns: [turnOf([1, 2], [3, 4], { masked: index === 1 }), turnOf([1, 2, 3, 4, 5], [6])],
  metrics: { tool_calls: 1, broken: NaN },
}));
const step = (index: number, order: number) =>
  ({ index, groups: [scored(groupOf(order, [1, 0], { trajectories, failures, tags: ['easy'] }))] }) as never;
const records = (index: number, order: number) =>
  JSON.parse(JSON.stringify(rolloutRecords(step(index, order), (tokens) => tokens.join('')))) as unknown[];

describe('groups of rollouts on the dashboard', () => {
  it('are made of the lines of the log: turns by what they are, failures, numbers only', () => {
    const { group } = groupChanges('first')(records(4, 9))[0]!;
    expect(group).toMatchObject({ run: 'first', step: 4, order: 9, tags: ['easy'] });
    expect(group.tries.map(({ index, reward, error }) => [index, reward, error])).toStrictEqual([
      [0, 1, undefined],
      [1, 0, undefined],
      [2, undefined, 'TimeoutError: too slow'],
    ]);
    const [first, second, third] = group.tries;
    expect(first!.parts).toStrictEqual([
      { kind: 'prompt', text: '12', length: 2 },
      { kind: 'sampled', text: '34', length: 2 },
      { kind: 'tool', text: '5', length: 5 },
      { kind: 'sampled', text: '6', length: 1 },
    ]);
    expect(second!.parts.map(({ kind }) => kind)).toStrictEqual(['prompt', 'masked', 'tool', 'sampled']);
    expect(third!.parts).toStrictEqual([]);
    expect(first!.metrics).toStrictEqual({ tool_calls: 1 });
  });

  it('whose lines come in two parts are sent again whole; what is no rollout is passed over', () => {
    const toChanges = groupChanges('first');
    const lines = records(0, 0);
    expect(toChanges(lines.slice(0, 1)).map(({ group }) => group.tries.length)).toStrictEqual([1]);
    expect(toChanges([...lines.slice(1), ...records(0, 1)]).map(({ group }) => group.tries.length)).toStrictEqual([
      3, 3,
    ]);
    expect(toChanges([null, 7, 'x', [], {}, { order: 1 }, { order: 'a', iteration: 1 }])).toStrictEqual([]);
    const odd = { order: 5, iteration: 1, steps: [null, { ac_text: 7 }], error: 3, tags: 'x', total_reward: 'high' };
    expect(toChanges([odd])[0]!.group.tries).toStrictEqual([
      { index: 0, parts: [{ kind: 'sampled', text: '', length: 0 }] },
    ]);
  });

  const group = (order: number, more: Partial<DashboardGroup> = {}): DashboardGroup => ({
    ...{ run: 'first', step: 0, order, tags: [], tries: [{ index: 0, reward: order, sampledAt: 0, parts: [] }] },
    ...more,
  });

  it('are kept once for each task of a run, the newest of very many, and gone when their run starts anew', () => {
    const state = new DashboardState();
    const push = (each: DashboardGroup) => state.apply({ kind: 'group', group: each });
    for (const order of [0, 1, 0]) push(group(order, { step: 3 }));
    push(group(0, { run: 'second' }));
    expect(state.groups.toArray().map(({ run, order }) => `${run} ${order}`)).toStrictEqual([
      'first 1',
      'first 0',
      'second 0',
    ]);
    const copy = new DashboardState();
    for (const change of state.changes()) copy.apply(change);
    expect(copy.groups.toArray()).toStrictEqual(state.groups.toArray());
    state.apply({ kind: 'run', run: 'first', status: 'running', fresh: true });
    expect(state.groups.toArray().map(({ run }) => run)).toStrictEqual(['second']);

    const many = new Groups();
    const long = [{ index: 0, parts: [{ kind: 'sampled' as const, text: 'x'.repeat(1_000_000), length: 1 }] }];
    for (let order = 0; order < 40; order++) many.push(group(order, { tries: long }));
    expect(many.toArray().map(({ order }) => order)).toStrictEqual(
      Array.from({ length: 15 }, (_, place) => 25 + place),
    );
  });

  it('are found by kind and in the order asked for', () => {
    const all = [
      group(1),
      group(2, { dropped: 'constant', step: 5 }),
      group(3, { tries: [{ index: 0, error: 'Error: no', parts: [] }], dropped: 'too-few' }),
    ];
    const orders = (kind: never, order: never, run = '') =>
      selectGroups(all, { run, kind, order }).map((each) => each.order);
    expect(orders('' as never, 'newest' as never)).toStrictEqual([3, 2, 1]);
    expect(orders('' as never, 'best' as never)).toStrictEqual([2, 1, 3]);
    expect(orders('' as never, 'worst' as never)).toStrictEqual([1, 2, 3]);
    expect(orders('' as never, 'oldest' as never)).toStrictEqual([2, 1, 3]);
    expect(orders('teaches' as never, 'newest' as never)).toStrictEqual([1]);
    expect(orders('dropped' as never, 'newest' as never)).toStrictEqual([3, 2]);
    expect(orders('failed' as never, 'newest' as never)).toStrictEqual([3]);
    expect(orders('' as never, 'newest' as never, 'second')).toStrictEqual([]);
    expect(failuresIn([...all, all[2]!]).map(({ error, count }) => [error, count])).toStrictEqual([['Error: no', 2]]);
  });
});
