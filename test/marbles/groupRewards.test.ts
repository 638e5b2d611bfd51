import { map, NEVER, type Observable, of, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Group, type GroupReward, groupRewards, type RlEvent } from '../../src/rl/index.js';
import { keepsContract, throwing } from './contract.js';
import { groupOf } from './fakeLoop.js';
import { gated } from './gated.js';
import { marbles } from './marbles.js';

const overGroups = (reward: GroupReward<string>) => (source: Observable<string>) =>
  source.pipe(
    map((_, order) => groupOf(order, [1, 0])),
    groupRewards(reward, { concurrency: 1 }),
    map(({ order, trajectories, viable }) => ({ order, viable, rewards: trajectories.map(({ reward: own }) => own) })),
  );
const rewards = map(({ trajectories }: Group) => trajectories.map(({ reward }) => reward));

describe('groupRewards', () => {
  keepsContract({ operator: () => overGroups(() => [2, 3]), readsForThree: 4 });

  it(
    'keeps the order of groups, and judges as many at once as it may',
    marbles((m) => {
      const source = m.cold('  (abc|)', { a: groupOf(0, [1, 0]), b: groupOf(1, [0, 0]), c: groupOf(2, [0, 0]) });
      const subs = '           (^!)';
      // The first takes 4, the others 1; the third begins when the first is done.
      const expected = '       ----(xy)-(z|)';
      const judging = groupRewards<string>(
        (_, task) => timer(task === 'task 0' ? 4 : task === 'task 2' ? 5 : 1).pipe(map(() => [0.5, 0.25])),
        { concurrency: 2 },
      );
      m.expect(source.pipe(judging, rewards)).toBeObservable(expected, {
        x: [1.5, 0.25],
        y: [0.5, 0.25],
        z: [0.5, 0.25],
      });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'a group that cannot be judged costs itself, and is told',
    marbles((m) => {
      const events: RlEvent[] = [];
      const wrong: readonly GroupReward<string>[] = [
        throwing,
        () => throwError(() => new Error('thrown')),
        () => [1],
        () => [1, NaN],
        () => of(),
      ];
      const source = m.cold('  (abcdef|)', {
        ...Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f'].map((name, order) => [name, groupOf(order, [1, 0])])),
      });
      const judging = groupRewards<string>(
        (trajectories, task) => (wrong[Number(task.slice(5))] ?? (() => [0, 0]))(trajectories, task),
        { onEvent: (event) => events.push(event) },
      );
      const said = map(({ viable, failures }: Group<string>) => [viable, failures.map(({ message }) => message)]);
      const no = (message: string) => [false, [`the group could not be judged: ${message}`]];
      m.expect(source.pipe(judging, said)).toBeObservable('(abcdef|)', {
        a: no('thrown'),
        b: no('thrown'),
        c: no('2 trajectories need as many rewards, got 1'),
        d: no('the reward of trajectory 1 is NaN; it must be a finite number, true or false'),
        e: no('no elements in sequence'),
        f: [true, []],
      });
      m.flush();
      expect(events.flatMap((event) => (event.type === 'rollout-failed' ? [event.order] : []))).toStrictEqual([
        0, 1, 2, 3, 4,
      ]);
    }),
  );

  it(
    'unsubscribed, stops what is being judged; a gated source waits',
    marbles((m) => {
      const judging = m.cold<readonly number[]>('----');
      const { source, sent } = gated(20);
      const result = source.pipe(
        map((order) => groupOf(order, [1, 0])),
        groupRewards(() => judging, { concurrency: 3 }),
      );
      m.expect(result, '       --!').toBeObservable('---');
      m.expect(judging).toHaveSubscriptions(['^-!', '^-!', '^-!']);
      m.flush();
      expect(sent()).toBe(3);
      m.expect(NEVER.pipe(groupRewards(() => [])), '-!').toBeObservable('--');
    }),
  );

  it('refuses to judge none at once', () => {
    expect(() => groupRewards(() => [], { concurrency: 0 })).toThrow(
      new RangeError('concurrency must be an integer >= 1, got 0'),
    );
  });
});
