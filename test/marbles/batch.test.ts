import fc from 'fast-check';
import { concatMap, from, ignoreElements, map, merge, tap, timer, VirtualTimeScheduler } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { batch } from '../../src/operators/data/batch.js';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import { Gate, underGate } from '../../src/operators/pressure/gate.js';
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

  it(
    'emits what there is when the first value of a batch has waited long enough',
    marbles((m) => {
      const source = m.cold('  -a-b-c-----d------|');
      const subs = '           ^-----------------!';
      const expected = '       -----x---------y--|';
      const result = source.pipe(batch({ size: 3, withinMs: 4 }));
      m.expect(result).toBeObservable(expected, { x: ['a', 'b', 'c'], y: ['d'] });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'counts the time from the first value of each batch',
    marbles((m) => {
      const source = m.cold('  -a-bc----d|');
      const expected = '       ---x---y--(z|)';
      const result = source.pipe(batch({ size: 2, withinMs: 3 }));
      m.expect(result).toBeObservable(expected, { x: ['a', 'b'], y: ['c'], z: ['d'] });
    }),
  );

  it(
    'emits the rest on completion, and stops its clock',
    marbles((m) => {
      const source = m.cold('  -a-|');
      const expected = '       ---(x|)';
      m.expect(source.pipe(batch({ size: 2, withinMs: 9 }))).toBeObservable(expected, { x: ['a'] });
    }),
  );

  it(
    'lets a batch that is due fill while what is downstream is full',
    marbles((m) => {
      const source = m.cold('  -a-b-c------|');
      const expected = '       -------x----(y|)';
      const slow = concatMapAhead((each: readonly string[]) => timer(5).pipe(map(() => each.join(''))), { ahead: 0 });
      m.expect(source.pipe(batch({ size: 9, withinMs: 1 }), slow)).toBeObservable(expected, { x: 'a', y: 'bc' });
    }),
  );

  it(
    'gives each batch its own time, where the one before it was due and became full while what is downstream was full',
    marbles((m) => {
      const source = m.hot('   -a----bc-d--e-----|');
      const opens = '          ----------x';
      const expected = '       -------x-----y----';
      const unsub = '          -----------------!';
      const gate = new Gate();
      gate.set(false);
      const opening = m.cold(opens).pipe(
        tap(() => gate.set(true)),
        ignoreElements(),
      );
      const result = merge(underGate(gate, source.pipe(batch({ size: 3, withinMs: 4 }))), opening);
      m.expect(result, unsub).toBeObservable(expected, { x: ['a', 'b', 'c'], y: ['d', 'e'] });
    }),
  );

  it('emits every value once, in order, in batches no larger and no later than it may', () => {
    const gaps = fc.array(fc.nat(6), { maxLength: 30 });
    fc.assert(
      fc.property(gaps, fc.integer({ min: 1, max: 5 }), fc.nat(8), (waits, size, withinMs) => {
        const scheduler = new VirtualTimeScheduler();
        const arrived: number[] = [];
        const source = from(waits).pipe(
          concatMap((gap, place) => timer(gap, scheduler).pipe(map(() => place))),
          tap(() => arrived.push(scheduler.now())),
        );
        const seen: number[] = [];
        source.pipe(batch({ size, withinMs, scheduler })).subscribe((values) => {
          expect(values.length).toBeLessThanOrEqual(size);
          expect(scheduler.now() - arrived[values[0]!]!).toBeLessThanOrEqual(withinMs);
          seen.push(...values);
        });
        scheduler.flush();
        expect(seen).toStrictEqual(waits.map((_, place) => place));
      }),
      { numRuns: 300, seed: 31 },
    );
  });

  it('refuses to drop smaller batches that withinMs is to emit', () => {
    expect(() => batch({ size: 2, withinMs: 1, partial: 'drop' })).toThrow(RangeError);
    expect(() => batch({ size: 2, withinMs: NaN })).toThrow(new RangeError('withinMs must be >= 0, got NaN'));
  });
});

describe('batch with a time', () => {
  keepsContract({ operator: () => batch({ size: 2, withinMs: 1000 }), readsForThree: 6 });
});
