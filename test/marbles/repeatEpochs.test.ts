import { EMPTY, from, map, type Observable, of, take, timer, tap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import { repeatEpochs } from '../../src/operators/data/repeatEpochs.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

describe('repeatEpochs', () => {
  keepsContract({
    operator: () => repeatEpochs({ epochs: 2 }),
    readsForThree: 3,
    throwing: () => repeatEpochs({ each: (rows) => rows.pipe(map(throwing)) }),
    empty: '----|',
    emptySubs: ['^-!', '--^-!'],
  });

  it(
    'runs through the source once an epoch',
    marbles((m) => {
      const source = m.cold('  -a-b-|');
      const subs = ['          ^----!', '-----^----!', '----------^----!'];
      const expected = '       -a-b--a-b--a-b-|';
      m.expect(source.pipe(repeatEpochs({ epochs: 3 }))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'runs once with one epoch',
    marbles((m) => {
      const source = m.cold('  -a-|');
      const subs = '           ^--!';
      const expected = '       -a-|';
      m.expect(source.pipe(repeatEpochs({ epochs: 1 }))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'completes at once with none',
    marbles((m) => {
      const source = m.cold('  -a-|');
      const expected = '       |';
      m.expect(source.pipe(repeatEpochs({ epochs: 0 }))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions([]);
    }),
  );

  it(
    'goes on without end unless told otherwise',
    marbles((m) => {
      const source = m.cold('  a|');
      const unsub = '          -----!';
      const expected = '       aaaaa';
      m.expect(source.pipe(repeatEpochs()), unsub).toBeObservable(expected);
    }),
  );

  it(
    'ends an endless run after an epoch without a value, instead of spinning',
    marbles((m) => {
      let epoch = 0;
      const source = m.cold('  -a|');
      const result = source.pipe(repeatEpochs({ each: (rows) => (epoch++ < 2 ? rows : EMPTY) }));
      m.expect(result).toBeObservable('-a-a|');
    }),
  );

  it(
    'runs all epochs of a finite run, also behind an empty one',
    marbles((m) => {
      const source = m.cold('  -a|');
      const expected = '       -a-a|';
      const result = source.pipe(repeatEpochs({ epochs: 3, each: (rows, epoch) => (epoch === 1 ? EMPTY : rows) }));
      m.expect(result).toBeObservable(expected);
    }),
  );

  it(
    'gives each epoch its number',
    marbles((m) => {
      const source = m.cold('  -a|');
      const expected = '       -x-y|';
      const each = (rows: Observable<string>, epoch: number) => rows.pipe(map((value) => `${value}${epoch}`));
      m.expect(source.pipe(repeatEpochs({ epochs: 2, each }))).toBeObservable(expected, { x: 'a0', y: 'a1' });
    }),
  );

  it(
    'fails when an epoch fails, and when each throws',
    marbles((m) => {
      const source = m.cold('  -a|');
      const failure = new Error('no');
      const throws = (rows: Observable<string>, epoch: number) => {
        if (epoch === 1) throw failure;
        return rows;
      };
      m.expect(source.pipe(repeatEpochs({ each: throws }))).toBeObservable('-a#', undefined, failure);
      const first = m.cold('   -#');
      m.expect(first.pipe(repeatEpochs())).toBeObservable('-#');
    }),
  );

  it(
    'stops the epoch under way when unsubscribed',
    marbles((m) => {
      const source = m.cold('  -a-|');
      const unsub = '          -----!';
      const subs = ['          ^--!', '---^-!'];
      const expected = '       -a--a';
      m.expect(source.pipe(repeatEpochs()), unsub).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it('runs thousands of synchronous epochs without a deep stack', () => {
    let seen = 0;
    from([1])
      .pipe(repeatEpochs(), take(100_000))
      .subscribe(() => seen++);
    expect(seen).toBe(100_000);
  });

  it.each([-1, 1.5, NaN])('refuses epochs %s', (epochs) => {
    expect(() => repeatEpochs({ epochs })).toThrow(new RangeError(`epochs must be an integer >= 0, got ${epochs}`));
  });

  it(
    'waits between epochs where each does',
    marbles((m) => {
      const source = of('a');
      const expected = '       --a-(a|)';
      const result = source.pipe(repeatEpochs({ epochs: 2, each: () => timer(2).pipe(map(() => 'a')) }));
      m.expect(result).toBeObservable(expected);
    }),
  );

  it(
    'does not spin over an array: the next epoch begins once there is room downstream',
    marbles((m) => {
      let read = 0;
      const source = of('a', 'b').pipe(tap(() => read++));
      const expected = '       --a-b-(a|)';
      const result = source.pipe(
        repeatEpochs(),
        concatMapAhead((value) => timer(2).pipe(map(() => value)), { ahead: 0 }),
        take(3),
      );
      m.expect(result).toBeObservable(expected);
      m.flush();
      expect(read).toBe(4);
    }),
  );
});
