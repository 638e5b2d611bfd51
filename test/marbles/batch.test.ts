import { describe, expect, it } from 'vitest';
import { batch } from '../../src/operators/batch.js';
import { keepsContract } from './contract.js';
import { marbles } from './marbles.js';

describe('batch', () => {
  const values = { x: ['a', 'b'], y: ['c', 'd'], z: ['e'] };

  keepsContract({ operator: () => batch({ size: 2 }), readsForThree: 6 });

  it(
    'emits a batch as soon as it is full, and the rest on completion',
    marbles((m) => {
      const source = m.cold('  -a-b-c-d-e-|');
      const subs = '           ^----------!';
      const expected = '       ---x---y---(z|)';
      m.expect(source.pipe(batch({ size: 2 }))).toBeObservable(expected, values);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'drops the rest when told to',
    marbles((m) => {
      const source = m.cold('  -a-b-c-d-e-|');
      const expected = '       ---x---y---|';
      m.expect(source.pipe(batch({ size: 2, partial: 'drop' }))).toBeObservable(expected, values);
    }),
  );

  it(
    'emits nothing extra when the last batch is exactly full',
    marbles((m) => {
      const source = m.cold('  -a-b-|');
      const expected = '       ---x-|';
      m.expect(source.pipe(batch({ size: 2 }))).toBeObservable(expected, values);
    }),
  );

  it(
    'emits a single value as a batch of one',
    marbles((m) => {
      const source = m.cold('  -e-|');
      const expected = '       ---(z|)';
      m.expect(source.pipe(batch({ size: 2 }))).toBeObservable(expected, values);
    }),
  );

  it(
    'drops what was collected when the source fails',
    marbles((m) => {
      const source = m.cold('  -a-b-c-#');
      const subs = '           ^------!';
      const expected = '       ---x---#';
      m.expect(source.pipe(batch({ size: 2 }))).toBeObservable(expected, values);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'takes size 1: every value by itself',
    marbles((m) => {
      const source = m.cold('  -a-b-|');
      const expected = '       -x-y-|';
      m.expect(source.pipe(batch({ size: 1 }))).toBeObservable(expected, { x: ['a'], y: ['b'] });
    }),
  );

  it.each([0, -1, 1.5, NaN])('refuses size %s', (size) => {
    expect(() => batch({ size })).toThrow(new RangeError(`size must be an integer >= 1, got ${size}`));
  });
});
