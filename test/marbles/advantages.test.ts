import { map } from 'rxjs';
import { describe, it } from 'vitest';
import { advantages, type ScoredGroup } from '../../src/rl/index.js';
import { keepsContract } from './contract.js';
import { groupOf } from './fakeLoop.js';
import { marbles } from './marbles.js';

const values = map(({ advantages: own, teaches, dropped }: ScoredGroup) => [own, teaches, dropped]);

describe('advantages', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map((_, order) => groupOf(order, [1, 0])),
        advantages(),
      ),
    readsForThree: 3,
  });

  it(
    'is in step with the source, and passes groups that teach nothing on',
    marbles((m) => {
      const groups = {
        a: groupOf(0, [1, 0]),
        b: groupOf(1, [1, 1]),
        c: groupOf(2, [3, 0, 0], { viable: false }),
      };
      const source = m.cold('  -a-b-c-|', groups);
      const subs = '           ^------!';
      const expected = '       -x-y-z-|';
      m.expect(source.pipe(advantages(), values)).toBeObservable(expected, {
        x: [[0.5, -0.5], true, undefined],
        y: [[0, 0], false, 'constant'],
        z: [[2, -1, -1], false, 'too-few'],
      });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'gives by each method what it says, and scores a group of none and of one',
    marbles((m) => {
      const source = m.cold('  -a-|', { a: groupOf(0, [4, 1, 1]) });
      const expected = '       -x-|';
      const by = (method: 'mean' | 'mean-deviation' | 'leave-one-out' | 'given') =>
        source.pipe(
          advantages({ method }),
          map((group) => group.advantages.map((value) => Number(value.toFixed(3)))),
        );
      m.expect(by('mean')).toBeObservable(expected, { x: [2, -1, -1] });
      // The sample deviation is √3.
      m.expect(by('mean-deviation')).toBeObservable(expected, { x: [1.155, -0.577, -0.577] });
      m.expect(by('leave-one-out')).toBeObservable(expected, { x: [3, -1.5, -1.5] });
      m.expect(by('given')).toBeObservable(expected, { x: [4, 1, 1] });
      const few = m.cold('     -ab|', { a: groupOf(0, []), b: groupOf(1, [1]) });
      m.expect(few.pipe(advantages(), values)).toBeObservable('-xy|', {
        x: [[], false, 'too-few'],
        y: [[0], false, 'constant'],
      });
    }),
  );
});
