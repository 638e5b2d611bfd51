import fc from 'fast-check';
import { from, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { movingMean } from '../../src/operators/metrics/movingMean.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

describe('movingMean', () => {
  keepsContract({
    operator: () => movingMean({ metric: (value) => value.length }),
    readsForThree: 3,
    throwing: () => movingMean({ metric: throwing }),
  });

  it(
    'is the mean of the last values, of fewer at the start',
    marbles((m) => {
      const source = m.cold('  -a-b-c-|', { a: { loss: 4 }, b: { loss: 2 }, c: { loss: 0 } });
      const subs = '           ^------!';
      const expected = '       -x-y-z-|';
      m.expect(source.pipe(movingMean({ window: 2 }))).toBeObservable(expected, { x: 4, y: 3, z: 1 });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'finds a metric of a step or of its newest evaluation, and passes over a value without it',
    marbles((m) => {
      const steps = {
        a: { metrics: { kl: 2 } },
        b: { metrics: {} },
        c: { metrics: {}, evaluations: [{ metrics: { kl: 8 } }, { metrics: { kl: 4 } }] },
      };
      const source = m.cold('  -a-b-c-|', steps);
      const expected = '       -x---y-|';
      m.expect(source.pipe(movingMean({ metric: 'kl' }))).toBeObservable(expected, { x: 2, y: 3 });
    }),
  );

  it('is the mean of the window, for any numbers', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), fc.integer({ min: 1, max: 9 }), (numbers, window) => {
        let seen: number[] = [];
        from(numbers)
          .pipe(movingMean({ window, metric: (number) => number }), toArray())
          .subscribe((all) => (seen = all));
        const expected = numbers.map((_, place) => {
          const last = numbers.slice(Math.max(0, place + 1 - window), place + 1);
          return last.reduce((sum, each) => sum + each, 0) / last.length;
        });
        expect(seen).toStrictEqual(expected);
      }),
    );
  });

  it.each([0, 1.5, NaN])('refuses window %s', (window) => {
    expect(() => movingMean({ window })).toThrow(new RangeError(`window must be an integer >= 1, got ${window}`));
  });
});
