import fc from 'fast-check';
import { from, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { anomaly, type Anomaly } from '../../src/operators/metrics/anomaly.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

const found = (numbers: readonly number[], options: Parameters<typeof anomaly<number>>[0]) => {
  let seen: Anomaly<number>[] = [];
  from(numbers)
    .pipe(anomaly({ metric: (number: number) => number, ...options }), toArray())
    .subscribe((all) => (seen = all));
  return seen;
};

describe('anomaly', () => {
  keepsContract({
    operator: () => anomaly({ metric: (value) => value.length, above: 0 }),
    readsForThree: 3,
    throwing: () => anomaly({ metric: throwing }),
  });

  it(
    'finds a number beyond its limit',
    marbles((m) => {
      const values = { a: { loss: 1 }, b: { loss: 90 }, c: { loss: -1 } };
      const source = m.cold('  -a-b-c-|', values);
      const subs = '           ^------!';
      const expected = '       ---x-y-|';
      m.expect(source.pipe(anomaly({ above: 9, below: 0 }))).toBeObservable(expected, {
        x: { value: values.b, metric: 90, reason: 'above', expected: 9 },
        y: { value: values.c, metric: -1, reason: 'below', expected: 0 },
      });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it('finds numbers that are not finite, without any option', () => {
    expect(found([1, NaN, 2, Infinity], {}).map(({ metric, reason }) => [metric, reason])).toStrictEqual([
      [NaN, 'not-finite'],
      [Infinity, 'not-finite'],
    ]);
  });

  it('finds spikes and drops, and does not take them for the usual afterwards', () => {
    const usual = [1, 2, 1, 2, 1, 2];
    const seen = found([...usual, 9, 9, 1, -9], { sigmas: 3, window: 6 });
    expect(seen.map(({ metric, reason, expected }) => [metric, reason, expected])).toStrictEqual([
      [9, 'spike', 1.5],
      [9, 'spike', 1.5],
      [-9, 'drop', 1.5],
    ]);
  });

  it('finds nothing in numbers within the limits, and all others, for any numbers', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ noNaN: true })), fc.nat(100), (numbers, limit) => {
        const seen = found(numbers, { above: limit, below: -limit }).map(({ value }) => value);
        expect(seen).toStrictEqual(numbers.filter((number) => Math.abs(number) > limit));
      }),
    );
  });

  it.each([{ sigmas: 0 }, { window: 1 }, { above: NaN }])('refuses %j', (options) => {
    expect(() => anomaly(options)).toThrow(RangeError);
  });
});
