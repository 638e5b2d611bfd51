import { describe, expect, it } from 'vitest';
import { batchByWeight } from '../../src/operators/data/batchByWeight.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

describe('batchByWeight', () => {
  const numbers = { a: 1, b: 2, c: 3, d: 4, e: 5 };
  const weight = (value: number) => value;

  keepsContract({
    operator: () => batchByWeight({ weight: () => 1, limit: 2 }),
    readsForThree: 6,
    throwing: () => batchByWeight({ weight: throwing, limit: 2 }),
  });

  it(
    'emits a batch when the next value would not fit',
    marbles((m) => {
      const source = m.cold('  -b-b-b-|', numbers);
      const subs = '           ^------!';
      const expected = '       -----x-(y|)';
      m.expect(source.pipe(batchByWeight({ weight, limit: 5 }))).toBeObservable(expected, { x: [2, 2], y: [2] });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'emits a batch at once when it is exactly full',
    marbles((m) => {
      const source = m.cold('  -b-c-a-|', numbers);
      const expected = '       ---x---(y|)';
      m.expect(source.pipe(batchByWeight({ weight, limit: 5 }))).toBeObservable(expected, { x: [2, 3], y: [1] });
    }),
  );

  it(
    'gives a value heavier than the limit a batch of its own',
    marbles((m) => {
      const source = m.cold('  -a-e----a-|', numbers);
      const expected = '       ---(xy)---(z|)';
      m.expect(source.pipe(batchByWeight({ weight, limit: 3 }))).toBeObservable(expected, { x: [1], y: [5], z: [1] });
    }),
  );

  it(
    'emits a batch that holds as many values as it may',
    marbles((m) => {
      const source = m.cold('  -a-a-a-|', numbers);
      const expected = '       ---x---(y|)';
      const result = source.pipe(batchByWeight({ weight, limit: 100, maxSize: 2 }));
      m.expect(result).toBeObservable(expected, { x: [1, 1], y: [1] });
    }),
  );

  it(
    'emits one value on completion',
    marbles((m) => {
      const source = m.cold('  -a-|', numbers);
      const expected = '       ---(x|)';
      m.expect(source.pipe(batchByWeight({ weight, limit: 3 }))).toBeObservable(expected, { x: [1] });
    }),
  );

  it(
    'fails when weight throws',
    marbles((m) => {
      const source = m.cold('  -a-b-|', numbers);
      const subs = '           ^--!';
      const expected = '       ---#';
      const throws = (value: number) => {
        if (value === 2) throw new Error('too much');
        return value;
      };
      m.expect(source.pipe(batchByWeight({ weight: throws, limit: 9 }))).toBeObservable(
        expected,
        undefined,
        new Error('too much'),
      );
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it.each([-1, NaN, Infinity])('fails when a value weighs %s', (price) => {
    marbles((m) => {
      const source = m.cold('  -a-|');
      const expected = '       -#';
      const failure = new RangeError(`weight must be finite and >= 0, got ${price}`);
      m.expect(source.pipe(batchByWeight({ weight: () => price, limit: 9 }))).toBeObservable(
        expected,
        undefined,
        failure,
      );
    })();
  });

  it.each([0, -1, NaN])('refuses limit %s', (limit) => {
    expect(() => batchByWeight({ weight: () => 1, limit })).toThrow(new RangeError(`limit must be > 0, got ${limit}`));
  });

  it('refuses maxSize 0', () => {
    expect(() => batchByWeight({ weight: () => 1, limit: 1, maxSize: 0 })).toThrow(RangeError);
  });

  it(
    'emits what there is when the first value of a batch has waited long enough',
    marbles((m) => {
      const source = m.cold('  -a-b------c-|', numbers);
      const expected = '       -----x------(y|)';
      const result = source.pipe(batchByWeight({ weight, limit: 3.5, withinMs: 4 }));
      m.expect(result).toBeObservable(expected, { x: [1, 2], y: [3] });
    }),
  );
});
