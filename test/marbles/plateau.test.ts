import fc from 'fast-check';
import { from, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { plateau } from '../../src/operators/metrics/plateau.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

const losses = { a: { loss: 5 }, b: { loss: 4 }, c: { loss: 6 }, d: { loss: 3 }, n: { loss: NaN } };

describe('plateau', () => {
  keepsContract({
    operator: () => plateau({ patience: 1, metric: () => 1 }),
    readsForThree: 4,
    throwing: () => plateau({ patience: 1, metric: throwing }),
  });

  it(
    'emits the value at which nothing has improved for long enough',
    marbles((m) => {
      const source = m.cold('  -a-b-b-c-d-|', losses);
      const subs = '           ^----------!';
      const expected = '       -------c---|';
      m.expect(source.pipe(plateau({ patience: 2 }))).toBeObservable(expected, losses);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'emits again after as many further values, and takes NaN for no improvement',
    marbles((m) => {
      const source = m.cold('  -a-a-n-a-a-|', losses);
      const expected = '       -----n---a-|';
      m.expect(source.pipe(plateau({ patience: 2 }))).toBeObservable(expected, losses);
    }),
  );

  it(
    'can ask for a least improvement, and for higher numbers',
    marbles((m) => {
      const source = m.cold('  -a-b-|', losses);
      m.expect(source.pipe(plateau({ patience: 1, minDelta: 2 }))).toBeObservable('---b-|', losses);
      m.expect(source.pipe(plateau({ patience: 1, better: 'higher' }))).toBeObservable('---b-|', losses);
      m.expect(source.pipe(plateau({ patience: 1 }))).toBeObservable('-----|', losses);
    }),
  );

  it('is silent for numbers that fall, and emits every so many for numbers that do not', () => {
    const options = { patience: 3, metric: (number: number) => number };
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer(), { minLength: 1 }), (numbers) => {
        const sorted = [...numbers].sort((a, b) => b - a);
        const count = (values: readonly number[]) => {
          let seen = -1;
          from(values)
            .pipe(plateau(options), toArray())
            .subscribe((all) => (seen = all.length));
          return seen;
        };
        expect(count(sorted)).toBe(0);
        expect(count(sorted.reverse())).toBe(Math.floor((numbers.length - 1) / 3));
      }),
    );
  });

  it.each([0, 1.5])('refuses patience %s', (patience) => {
    expect(() => plateau({ patience })).toThrow(RangeError);
  });
});
