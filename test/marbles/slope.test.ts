import fc from 'fast-check';
import { from, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { slope } from '../../src/operators/metrics/slope.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

describe('slope', () => {
  keepsContract({
    operator: () => slope({ window: 2, metric: (value) => value.length }),
    readsForThree: 4,
    throwing: () => slope({ metric: throwing }),
  });

  it(
    'is the change from one value to the next, once the window is full',
    marbles((m) => {
      const source = m.cold('  -a-b-c-c-|', { a: { loss: 5 }, b: { loss: 4 }, c: { loss: 3 } });
      const subs = '           ^--------!';
      const expected = '       -----x-y-|';
      m.expect(source.pipe(slope({ window: 3 }))).toBeObservable(expected, { x: -1, y: -0.5 });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it('finds the slope of any straight line', () => {
    const number = fc.integer({ min: -1000, max: 1000 });
    fc.assert(
      fc.property(number, number, fc.integer({ min: 2, max: 30 }), (start, perStep, window) => {
        let seen: number[] = [];
        from(Array.from({ length: window + 3 }, (_, place) => start + perStep * place))
          .pipe(slope({ window, metric: (value) => value }), toArray())
          .subscribe((all) => (seen = all));
        expect(seen).toHaveLength(4);
        for (const each of seen) expect(each).toBeCloseTo(perStep, 6);
      }),
    );
  });

  it.each([1, 0, NaN])('refuses window %s', (window) => {
    expect(() => slope({ window })).toThrow(new RangeError(`window must be an integer >= 2, got ${window}`));
  });
});
