import { map, NEVER, Observable, tap, timer } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import { Gate, withGate } from '../../src/operators/pressure/gate.js';
import { takeUntilIdle } from '../../src/operators/flow/takeUntilIdle.js';
import { keepsContract } from './contract.js';
import { gated } from './gated.js';
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

  it(
    'does not take a paused file for an idle one: 10 of 10 steps, where it was 2',
    marbles((m) => {
      const { source, sent } = gated(10);
      const result = source.pipe(
        takeUntilIdle({ idleMs: 3 }),
        concatMapAhead((row) => timer(20).pipe(map(() => String(row))), { ahead: 0 }),
        tap({ complete: () => expect(sent()).toBe(10) }),
      );
      const steps = Array.from({ length: 9 }, (_, step) => `20ms ${step} `)
        .join('')
        .replace(/20ms (?!0)/g, '19ms ');
      m.expect(result).toBeObservable(`${steps}19ms (9|)`);
    }),
  );

  it(
    'counts the silence from when the source could go on again',
    marbles((m) => {
      const gate = new Gate();
      const silent = m.cold('  a---------------');
      const closed = m.cold('  -c---o----------').pipe(tap((event) => gate.set(event === 'o')));
      const expected = '       a---------|-----';
      const idle = new Observable<string>((subscriber) =>
        withGate(gate, () => silent.pipe(takeUntilIdle({ idleMs: 5 })).subscribe(subscriber)),
      );
      closed.subscribe();
      m.expect(idle).toBeObservable(expected);
    }),
  );

  it('does not complete at once with an idleMs of 40 days, which no timer can wait for', () => {
    vi.useFakeTimers();
    try {
      let done = false;
      const idleMs = 40 * 24 * 3600 * 1000;
      const running = NEVER.pipe(takeUntilIdle({ idleMs })).subscribe({ complete: () => (done = true) });
      vi.advanceTimersByTime(39 * 24 * 3600 * 1000);
      expect(done).toBe(false);
      vi.advanceTimersByTime(2 * 24 * 3600 * 1000);
      expect(done).toBe(true);
      running.unsubscribe();
    } finally {
      vi.useRealTimers();
    }
  });

  // A timer would keep the process alive, and virtual time would never come to its end.
  it('sets no timer with idleMs Infinity', () => {
    vi.useFakeTimers();
    try {
      const running = NEVER.pipe(takeUntilIdle({ idleMs: Infinity })).subscribe();
      expect(vi.getTimerCount()).toBe(0);
      running.unsubscribe();
    } finally {
      vi.useRealTimers();
    }
  });

  it.each([-1, NaN])('refuses idleMs %s', (idleMs) => {
    expect(() => takeUntilIdle({ idleMs })).toThrow(new RangeError(`idleMs must be >= 0, got ${idleMs}`));
  });
});
