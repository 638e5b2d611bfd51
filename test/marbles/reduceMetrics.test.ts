import { from, lastValueFrom, map, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { reduceMetrics } from '../../src/operators/metrics/reduceMetrics.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

const figures = (values: readonly object[], window?: number) =>
  lastValueFrom(from(values).pipe(reduceMetrics(window === undefined ? {} : { window }), toArray()));

describe('reduceMetrics', () => {
  keepsContract({
    operator: () => reduceMetrics({ metrics: () => ({ one: 1 }) }),
    readsForThree: 3,
    throwing: () => reduceMetrics({ metrics: throwing }),
  });

  it(
    'adds running and windowed figures to each value, when it comes',
    marbles((m) => {
      const source = m.cold('  -a-b-c-|', { a: { loss: 4 }, b: { loss: 2 }, c: { loss: 0 } });
      const subs = '           ^------!';
      const expected = '       -x-y-z-|';
      const means = source.pipe(
        reduceMetrics({ window: 2 }),
        map(({ running, windowed }) => [running['loss']!.mean, windowed['loss']!.mean]),
      );
      m.expect(means).toBeObservable(expected, { x: [4, 4], y: [3, 3], z: [2, 1] });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it('gives last, mean, min, max, sum and count, and the value itself', async () => {
    const values = [{ metrics: { a: 3 } }, { metrics: { a: 1 } }];
    const summary = { last: 1, mean: 2, min: 1, max: 3, sum: 4, count: 2 };
    expect((await figures(values)).at(-1)).toStrictEqual({
      value: values[1],
      running: { a: summary },
      windowed: { a: summary },
    });
  });

  it('passes over what a value does not have, and NaN', async () => {
    const [, , last] = await figures([{ metrics: { a: 3, b: 1 }, loss: 1 }, { metrics: { a: NaN } }, {}]);
    expect([last!.running['a']!.count, last!.running['b']!.count, last!.running['loss']!.count]).toStrictEqual([
      1, 1, 1,
    ]);
  });

  it('looks at the last value alone with window 1', async () => {
    const results = await figures([{ loss: 4 }, { loss: 2 }], 1);
    expect(results.map(({ windowed }) => windowed['loss']!.mean)).toStrictEqual([4, 2]);
  });

  it(
    'fails with what metrics throws',
    marbles((m) => {
      const source = m.cold('  -a-|');
      const metrics = () => {
        throw new Error('no');
      };
      m.expect(source.pipe(reduceMetrics({ metrics }))).toBeObservable('-#', undefined, new Error('no'));
    }),
  );

  it.each([0, 1.5])('refuses window %s', (window) => {
    expect(() => reduceMetrics({ window })).toThrow(new RangeError(`window must be an integer >= 1, got ${window}`));
  });
});
