import { map } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { tokensPerSecond } from '../../src/operators/metrics/tokensPerSecond.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

const rate = map((value: { tokensPerSecond: number }) => value.tokensPerSecond);

describe('tokensPerSecond', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map((text) => ({ text, tokens: 1 })),
        tokensPerSecond(),
      ),
    readsForThree: 3,
    throwing: () => (source) =>
      source.pipe(
        map((text) => ({ text })),
        tokensPerSecond({ tokens: throwing }),
      ),
  });

  it(
    'divides the tokens of the last values by the time they took',
    marbles((m) => {
      const source = m.cold('  -a---b---|', { a: { tokens: 1000 }, b: { tokens: 1000 } });
      const subs = '           ^--------!';
      const expected = '       -a---b---|';
      m.expect(source.pipe(tokensPerSecond(), rate)).toBeObservable(expected, { a: 1_000_000, b: 400_000 });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'forgets what is older than the window',
    marbles((m) => {
      const source = m.cold('  -a---b-c-|', { a: { tokens: 1000 }, b: { tokens: 1000 }, c: { tokens: 500 } });
      const expected = '       -a---b-c-|';
      const values = { a: 1_000_000, b: 250_000, c: 250_000 };
      m.expect(source.pipe(tokensPerSecond({ window: 1 }), rate)).toBeObservable(expected, values);
    }),
  );

  it(
    'is 0 while no time has passed, and keeps the value',
    marbles((m) => {
      const source = m.cold('  (a|)', { a: { tokens: 5, x: 1 } });
      m.expect(source.pipe(tokensPerSecond())).toBeObservable('(a|)', { a: { tokens: 5, x: 1, tokensPerSecond: 0 } });
    }),
  );

  it(
    'counts what it is told to, and fails with what that throws',
    marbles((m) => {
      const source = m.cold('  -a-|', { a: { n: 2 } });
      m.expect(source.pipe(tokensPerSecond({ tokens: ({ n }) => n }), rate)).toBeObservable('-a-|', { a: 2000 });
      const tokens = () => {
        throw new Error('no');
      };
      m.expect(source.pipe(tokensPerSecond({ tokens }))).toBeObservable('-#', undefined, new Error('no'));
    }),
  );

  it.each([0, 1.5])('refuses window %s', (window) => {
    expect(() => tokensPerSecond({ window })).toThrow(new RangeError(`window must be an integer >= 1, got ${window}`));
  });
});
