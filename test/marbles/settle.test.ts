import { left, right } from 'fp-ts/lib/Either.js';
import { concatMap, map, of, take, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { settle } from '../../src/operators/flow/settle.js';
import { firehose, keepsContract } from './contract.js';
import { marbles } from './marbles.js';

describe('settle', () => {
  keepsContract({
    operator: () => settle(),
    readsForThree: 3,
    failing: { marbles: '--(e|)', values: { e: left('error') } },
  });

  const values = { a: right('a'), b: right('b'), e: left('error') };

  it(
    'turns values into rights',
    marbles((m) => {
      const source = m.cold('  -a-b-|');
      const subs = '           ^----!';
      const expected = '       -a-b-|';
      m.expect(source.pipe(settle())).toBeObservable(expected, values);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'turns an error into a last left',
    marbles((m) => {
      const source = m.cold('  -a-b-#');
      const subs = '           ^----!';
      const expected = '       -a-b-(e|)';
      m.expect(source.pipe(settle())).toBeObservable(expected, values);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'turns a lone error into a left',
    marbles((m) => {
      const source = m.cold('  --#');
      const expected = '       --(e|)';
      m.expect(source.pipe(settle())).toBeObservable(expected, values);
    }),
  );

  it(
    'keeps the stream around it going when one item fails',
    marbles((m) => {
      const source = m.cold('  -a-x-b-|');
      const expected = '       -a-e-b-|';
      const item = (value: string) => (value === 'x' ? throwError(() => 'error') : of(value));
      const result = source.pipe(concatMap((value: string) => item(value).pipe(settle())));
      m.expect(result).toBeObservable(expected, values);
    }),
  );

  it(
    'catches what a callback before it throws',
    marbles((m) => {
      const source = m.cold('  -a-|');
      const expected = '       -(e|)';
      const throws = map((): string => {
        // oxlint-disable-next-line typescript/only-throw-error
        throw 'error';
      });
      m.expect(source.pipe(throws, settle())).toBeObservable(expected, values);
    }),
  );

  it(
    'completes with an empty source',
    marbles((m) => {
      const source = m.cold('  --|');
      const expected = '       --|';
      m.expect(source.pipe(settle())).toBeObservable(expected);
    }),
  );

  it(
    'unsubscribes from a silent source when unsubscribed',
    marbles((m) => {
      const source = m.cold('  ------');
      const unsub = '          --!';
      const subs = '           ^-!';
      const expected = '       ------';
      m.expect(source.pipe(settle()), unsub).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'starts afresh for every subscriber',
    marbles((m) => {
      const source = m.cold('  -a-#');
      const result = source.pipe(settle());
      m.scheduler.expectObservable(result).toEqual(result);
    }),
  );

  it('stops a synchronous source when its subscriber has enough', () => {
    const { source, read } = firehose();
    const seen: unknown[] = [];
    source.pipe(settle(), take(3)).subscribe((value) => seen.push(value));
    expect(seen).toStrictEqual([right('0'), right('1'), right('2')]);
    expect(read()).toBe(3);
  });
});
