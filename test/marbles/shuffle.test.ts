import { from, lastValueFrom, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { shuffle } from '../../src/operators/data/shuffle.js';
import { keepsContract } from './contract.js';
import { marbles } from './marbles.js';

const shuffled = (values: readonly number[], window: number, seed: number) =>
  lastValueFrom(from(values).pipe(shuffle({ window, seed }), toArray()));

describe('shuffle', () => {
  keepsContract({ operator: () => shuffle({ window: 2, seed: 1 }), readsForThree: 5 });

  it(
    'emits nothing before the window is full, then one for one, then what is held',
    marbles((m) => {
      const source = m.cold('  -a-b-c-d-|');
      const subs = '           ^--------!';
      const expected = '       -----w-x-(yz|)';
      const result = source.pipe(shuffle({ window: 2, seed: 1 }));
      m.expect(result).toBeObservable(expected, { w: 'a', x: 'c', y: 'd', z: 'b' });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'passes a single value on completion',
    marbles((m) => {
      const source = m.cold('  -a-|');
      const expected = '       ---(a|)';
      m.expect(source.pipe(shuffle({ window: 2, seed: 1 }))).toBeObservable(expected);
    }),
  );

  it(
    'drops what is held when the source fails',
    marbles((m) => {
      const source = m.cold('  -a-#');
      const expected = '       ---#';
      m.expect(source.pipe(shuffle({ window: 2, seed: 1 }))).toBeObservable(expected);
    }),
  );

  it('keeps the order with a window of 1', async () => {
    expect(await shuffled([1, 2, 3, 4], 1, 7)).toStrictEqual([1, 2, 3, 4]);
  });

  it('loses nothing, doubles nothing, and depends on the seed alone', async () => {
    const values = Array.from({ length: 1000 }, (_, place) => place);
    const first = await shuffled(values, 64, 1);
    expect(first.toSorted((a, b) => a - b)).toStrictEqual(values);
    expect(await shuffled(values, 64, 1)).toStrictEqual(first);
    expect(await shuffled(values, 64, 2)).not.toStrictEqual(first);
  });

  it('never holds a value back by chance alone: every place is as likely', async () => {
    // Window over the whole: a fair shuffle. 6 orders of 3 values, 6000 seeds, 1000 each give or take.
    const counts = new Map<string, number>();
    for (let seed = 0; seed < 6000; seed++) {
      const order = (await shuffled([1, 2, 3], 3, seed)).join('');
      counts.set(order, (counts.get(order) ?? 0) + 1);
    }
    expect(counts.size).toBe(6);
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });

  it.each([0, 1.5, NaN])('refuses window %s', (window) => {
    expect(() => shuffle({ window, seed: 1 })).toThrow(new RangeError(`window must be an integer >= 1, got ${window}`));
  });

  it('refuses a seed that is no integer', () => {
    expect(() => shuffle({ window: 1, seed: 0.5 })).toThrow(new RangeError('seed must be an integer, got 0.5'));
  });
});
