import fc from 'fast-check';
import { concatMap, from, map, NEVER, timer, VirtualTimeScheduler } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import { rateLimit } from '../../src/operators/flow/rateLimit.js';
import { TokenBucket } from '../../src/operators/flow/TokenBucket.js';
import { keepsContract, throwing } from './contract.js';
import { gated } from './gated.js';
import { marbles } from './marbles.js';

describe('rateLimit', () => {
  keepsContract({
    operator: () => rateLimit({ limit: 1000 }),
    readsForThree: 3,
    throwing: () => rateLimit({ limit: 1000, weight: throwing }),
  });

  it(
    'lets a burst pass, then keeps to the rate',
    marbles((m) => {
      const source = m.cold('  (abcd|)');
      const subs = '           (^!)';
      const expected = '       (ab)-c----(d|)';
      m.expect(source.pipe(rateLimit({ limit: 1, perMs: 5, burst: 2 }))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'counts by weight, and pays back what weighs more than the burst',
    marbles((m) => {
      const source = m.cold('  (abc|)', { a: 6, b: 2, c: 1 });
      const expected = '       a---b(c|)';
      const result = source.pipe(rateLimit({ limit: 1, perMs: 1, burst: 4, weight: (value) => value }));
      m.expect(result).toBeObservable(expected, { a: 6, b: 2, c: 1 });
    }),
  );

  it(
    'fills again in a pause, up to the burst',
    marbles((m) => {
      const source = m.cold('  (ab)----------------(cde|)');
      const expected = '       (ab)----------------(cd)(e|)';
      m.expect(source.pipe(rateLimit({ limit: 1, perMs: 4, burst: 2 }))).toBeObservable(expected);
    }),
  );

  it(
    'shares a bucket, first come first served',
    marbles((m) => {
      const bucket = new TokenBucket({ limit: 1, perMs: 2, burst: 1 });
      const first = m.cold('   (ab|)').pipe(rateLimit({ bucket }));
      const second = m.cold('  (cd|)').pipe(rateLimit({ bucket }));
      m.expect(first).toBeObservable('a-(b|)');
      m.expect(second).toBeObservable('----c-(d|)');
    }),
  );

  it(
    'gives back what a value took that was unsubscribed while it waited',
    marbles((m) => {
      const bucket = new TokenBucket({ limit: 1, perMs: 4, burst: 1 });
      const first = m.cold('   (ab|)').pipe(rateLimit({ bucket }));
      const second = m.cold('  ---c|').pipe(rateLimit({ bucket }));
      m.expect(first, '        --!').toBeObservable('a--');
      m.expect(second).toBeObservable('----(c|)');
    }),
  );

  it('pauses its source, and takes nothing while what is downstream is full', () => {
    const { source, sent } = gated();
    const stuck = concatMapAhead(() => NEVER, { ahead: 0 });
    source
      .pipe(rateLimit({ limit: 1000 }), stuck)
      .subscribe()
      .unsubscribe();
    expect(sent()).toBe(1);
  });

  it('never passes more than the burst and the rate allow, in any stretch of time', () => {
    const value = fc.record({ gap: fc.nat(6), weight: fc.integer({ min: 0, max: 4 }) });
    fc.assert(
      fc.property(
        fc.array(value, { maxLength: 30 }),
        fc.integer({ min: 4, max: 8 }),
        fc.integer({ min: 1, max: 5 }),
        (values, burst, perMs) => {
          const scheduler = new VirtualTimeScheduler();
          const passed: { readonly atMs: number; readonly weight: number }[] = [];
          from(values)
            .pipe(
              concatMap(({ gap, weight }) => timer(gap, scheduler).pipe(map(() => weight))),
              rateLimit({ limit: 1, perMs, burst, scheduler, weight: (weight) => weight }),
            )
            .subscribe((weight) => passed.push({ atMs: scheduler.now(), weight }));
          scheduler.flush();
          expect(passed.map(({ weight }) => weight)).toStrictEqual(values.map(({ weight }) => weight));
          passed.forEach((first, from) => {
            let sum = 0;
            for (const { atMs, weight } of passed.slice(from)) {
              sum += weight;
              expect(sum).toBeLessThanOrEqual(burst + (atMs - first.atMs) / perMs + 1e-9);
            }
          });
        },
      ),
      { numRuns: 300, seed: 31 },
    );
  });

  it.each([0, -1, NaN])('refuses limit %s', (limit) => {
    expect(() => rateLimit({ limit })).toThrow(new RangeError(`limit must be > 0, got ${limit}`));
  });
});
