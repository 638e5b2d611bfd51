import { type Either, left, right } from 'fp-ts/lib/Either.js';
import fc from 'fast-check';
import { from, map, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { DeadLetter } from '../../src/operators/flow/FailurePolicy.js';
import { unsettle } from '../../src/operators/flow/unsettle.js';
import { AuthenticationError } from '../../src/client/errors.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

const error = new Error('bad');
type Settled = Either<{ readonly item: number; readonly error: Error }, string>;
const settled: Record<string, Settled> = { A: right('a'), B: right('b'), E: left({ item: 7, error }) };

describe('unsettle', () => {
  keepsContract({
    operator: () => (source) => source.pipe(map(right), unsettle('skip')),
    readsForThree: 3,
    throwing: () => (source) =>
      source.pipe(
        map((item) => left({ item, error })),
        unsettle({ deadLetters: throwing }),
      ),
  });

  it(
    'leaves out what failed',
    marbles((m) => {
      const source = m.cold('  -A-E-B-|', settled);
      const subs = '           ^------!';
      const expected = '       -a---b-|';
      m.expect(source.pipe(unsettle('skip'))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'ends with the first error',
    marbles((m) => {
      const source = m.cold('  -A-E-B-|', settled);
      const expected = '       -a-#';
      m.expect(source.pipe(unsettle('fail'))).toBeObservable(expected, undefined, error);
      m.expect(source.pipe(unsettle({}))).toBeObservable(expected, undefined, error);
    }),
  );

  it(
    'ends with an error that every item would meet',
    marbles((m) => {
      const refused = new AuthenticationError('no such key', { status: 401 } as never);
      const source = m.cold<Settled>('  -A-E-|', { A: right('a'), E: left({ item: 7, error: refused }) });
      const expected = '       -a-#';
      m.expect(source.pipe(unsettle('skip'))).toBeObservable(expected, undefined, refused);
    }),
  );

  it('gives every item to the next stage or to the dead letters, never to both', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(), fc.boolean())), (items) => {
        const letters: DeadLetter<number>[] = [];
        const passed: number[] = [];
        from(items)
          .pipe(
            map(([item, good]) => (good ? right(item) : left({ item, error }))),
            unsettle({ deadLetters: (letter: DeadLetter<number>) => letters.push(letter) }),
            toArray(),
          )
          .subscribe((all) => passed.push(...all));
        const those = (good: boolean) => items.filter((each) => each[1] === good).map(([item]) => item);
        expect(passed).toStrictEqual(those(true));
        expect(letters).toStrictEqual(those(false).map((item) => ({ item, error, attempts: 1 })));
      }),
    );
  });
});
