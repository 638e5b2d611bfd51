import { catchError, concat, defer, map, of, throwError } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { retryBackoff, type RetryBackoffOptions } from '../../src/operators/flow/retryBackoff.js';
import { TokenBucket } from '../../src/operators/flow/TokenBucket.js';
import { keepsContract } from './contract.js';
import { marbles } from './marbles.js';

const again = { retryable: true };
const exact: RetryBackoffOptions = { initialMs: 2, jitter: 0 };

describe('retryBackoff', () => {
  keepsContract({ operator: () => retryBackoff({ retryable: () => false }), readsForThree: 3 });

  it(
    'waits twice as long each time, up to the longest wait',
    marbles((m) => {
      const source = m.cold('  #', undefined, again);
      // Failures at 0, 2, 2+4, 6+5, 11+5 ms.
      const subs = ['          (^!)', '--(^!)', '------(^!)', '-----------(^!)', '----------------(^!)'];
      const expected = '       ----------------(e|)';
      const result = source.pipe(
        retryBackoff({ ...exact, maxMs: 5, maxRetries: 4 }),
        catchError((error: unknown) => of(error)),
      );
      m.expect(result).toBeObservable(expected, { e: again });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'starts over after a value',
    marbles((m) => {
      const source = m.cold('  -a#', undefined, again);
      const unsub = '          --------------!';
      const expected = '       -a---a---a---a-';
      m.expect(source.pipe(retryBackoff({ ...exact, maxRetries: 1 })), unsub).toBeObservable(expected);
    }),
  );

  it(
    'passes an error that is not retryable at once',
    marbles((m) => {
      const source = m.cold('  -a#', undefined, { retryable: false });
      const subs = '           ^-!';
      const expected = '       -a(e|)';
      const result = source.pipe(
        retryBackoff(exact),
        catchError((error: unknown) => of(error)),
      );
      m.expect(result).toBeObservable(expected, { a: 'a', e: { retryable: false } });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'asks the function it is given whether to retry',
    marbles((m) => {
      const source = m.cold('  #', undefined, new Error('busy'));
      const expected = '       --#';
      let asked = 0;
      const retryable = (error: unknown) => (error as Error).message === 'busy' && asked++ < 1;
      m.expect(source.pipe(retryBackoff({ ...exact, retryable }))).toBeObservable(
        expected,
        undefined,
        new Error('busy'),
      );
    }),
  );

  it(
    'waits as long as the server asks, without jitter and beyond its own longest wait',
    marbles((m) => {
      const busy = { retryable: true, retryAfterMs: 60_000 };
      let attempts = 0;
      const source = defer(() => (attempts++ === 0 ? throwError(() => busy) : of('a')));
      const expected = '       60s (a|)';
      m.expect(source.pipe(retryBackoff({ initialMs: 2, maxMs: 5, random: () => 0.9 }))).toBeObservable(expected);
    }),
  );

  it('waits 30 days where the server asks for them, instead of trying 124 times in 200 ms', () => {
    vi.useFakeTimers();
    try {
      let attempts = 0;
      const month = 30 * 24 * 3600 * 1000;
      const source = defer(() => (attempts++, throwError(() => ({ retryable: true, retryAfterMs: month }))));
      const running = source.pipe(retryBackoff()).subscribe();
      vi.advanceTimersByTime(month - 1);
      expect(attempts).toBe(1);
      vi.advanceTimersByTime(1);
      expect(attempts).toBe(2);
      running.unsubscribe();
    } finally {
      vi.useRealTimers();
    }
  });

  it(
    'takes a server delay of zero: at once',
    marbles((m) => {
      let attempts = 0;
      const busy = { retryable: true, retryAfterMs: 0 };
      const source = defer(() => (attempts++ === 0 ? throwError(() => busy) : of('a')));
      m.expect(source.pipe(retryBackoff(exact))).toBeObservable('(a|)');
    }),
  );

  it(
    'strays by the jitter, both ways',
    marbles((m) => {
      const chances = [0, 0.5, 1];
      const source = m.cold('  #', undefined, again);
      // 100 ms · 0.75, · 1, · 1.25
      const expected = '       75ms 100ms 125ms (e|)';
      const random = () => chances.shift()!;
      const result = source.pipe(
        retryBackoff({ initialMs: 100, factor: 1, jitter: 0.25, maxRetries: 3, random }),
        map(() => 'never'),
        catchError((error: unknown) => of(error)),
      );
      m.expect(result).toBeObservable(expected, { e: again });
    }),
  );

  it(
    'gives up at once when the next retry would start after the deadline',
    marbles((m) => {
      const source = m.cold('  #', undefined, again);
      // Retries at 2 and 6 ms; the next would be at 14.
      const expected = '       ------(e|)';
      const result = source.pipe(
        retryBackoff({ ...exact, deadlineMs: 13 }),
        catchError((error: unknown) => of(error)),
      );
      m.expect(result).toBeObservable(expected, { e: again });
    }),
  );

  it(
    'starts a retry that falls exactly on the deadline',
    marbles((m) => {
      const source = m.cold('  #', undefined, again);
      const subs = ['          (^!)', '--(^!)'];
      const result = source.pipe(
        retryBackoff({ ...exact, deadlineMs: 2 }),
        catchError((error: unknown) => of(error)),
      );
      m.expect(result).toBeObservable('--(e|)', { e: again });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'stops waiting when unsubscribed',
    marbles((m) => {
      const source = m.cold('  -#', undefined, again);
      const unsub = '          --!';
      const subs = '           ^!';
      const expected = '       -------';
      m.expect(source.pipe(retryBackoff(exact)), unsub).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'fails with what retryable throws',
    marbles((m) => {
      const source = m.cold('  -#', undefined, again);
      const expected = '       -#';
      const retryable = () => {
        throw new Error('no idea');
      };
      m.expect(source.pipe(retryBackoff({ ...exact, retryable }))).toBeObservable(
        expected,
        undefined,
        new Error('no idea'),
      );
    }),
  );

  it(
    'counts for every subscriber by itself',
    marbles((m) => {
      const source = m.cold('  #', undefined, again);
      const result = concat(
        ...[0, 1].map(() =>
          source.pipe(
            retryBackoff({ ...exact, maxRetries: 1 }),
            catchError(() => of('e')),
          ),
        ),
      );
      m.expect(result).toBeObservable('--e-(e|)');
    }),
  );

  it.each<[keyof RetryBackoffOptions, number]>([
    ['initialMs', -1],
    ['factor', 0.5],
    ['maxMs', NaN],
    ['jitter', 1.5],
    ['maxRetries', -1],
    ['deadlineMs', -1],
  ])('refuses %s %s', (name, value) => {
    expect(() => retryBackoff({ [name]: value })).toThrow(RangeError);
    expect(() => retryBackoff({ [name]: value })).toThrow(`${name} must be`);
  });

  it(
    'shares a budget of retries, and passes the error on when that is spent',
    marbles((m) => {
      const budget = new TokenBucket({ limit: 1, perMs: 1000, burst: 3 });
      const source = m.cold('  #', undefined, again);
      const expected = '       ------(e|)';
      const result = () =>
        source.pipe(
          retryBackoff({ ...exact, budget }),
          catchError((error: unknown) => of(error)),
        );
      // Retries at 2 and 6 here, and at 2 there: then there are none left for either.
      m.expect(result()).toBeObservable(expected, { e: again });
      m.expect(result()).toBeObservable('--(e|)', { e: again });
      m.expect(source).toHaveSubscriptions(['(^!)', '(^!)', '--(^!)', '--(^!)', '------(^!)']);
    }),
  );
});
