import { describe, expect, it } from 'vitest';
import { takeUntilIdle } from '../../src/operators/takeUntilIdle.js';
import { keepsContract } from './contract.js';
import { marbles } from './marbles.js';

describe('takeUntilIdle', () => {
  keepsContract({ operator: () => takeUntilIdle({ idleMs: 10 }), readsForThree: 3 });

  it(
    'completes once the source was silent for the time given',
    marbles((m) => {
      const source = m.cold('  -a-b---------c-|');
      const subs = '           ^------!';
      const expected = '       -a-b---|';
      m.expect(source.pipe(takeUntilIdle({ idleMs: 4 }))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'counts from subscribe: a source that never speaks ends too',
    marbles((m) => {
      const source = m.cold('  ------------');
      const subs = '           ^---!';
      const expected = '       ----|';
      m.expect(source.pipe(takeUntilIdle({ idleMs: 4 }))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'lets a value through that comes one frame before the time is up',
    marbles((m) => {
      const source = m.cold('  -a---b----|');
      const expected = '       -a---b----|';
      m.expect(source.pipe(takeUntilIdle({ idleMs: 5 }))).toBeObservable(expected);
    }),
  );

  it(
    'completes an hour later without a real hour',
    marbles((m) => {
      const source = m.cold('  a 120m b');
      const expected = '       a 3599999ms |';
      m.expect(source.pipe(takeUntilIdle({ idleMs: 3_600_000 }))).toBeObservable(expected);
    }),
  );

  it(
    'asks the scheduler it is given',
    marbles((m) => {
      const source = m.cold('  -a----');
      const expected = '       -a-|';
      m.expect(source.pipe(takeUntilIdle({ idleMs: 2, scheduler: m.scheduler }))).toBeObservable(expected);
    }),
  );

  it.each([-1, NaN])('refuses idleMs %s', (idleMs) => {
    expect(() => takeUntilIdle({ idleMs })).toThrow(new RangeError(`idleMs must be >= 0, got ${idleMs}`));
  });
});
