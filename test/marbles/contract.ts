import { from, type OperatorFunction, take } from 'rxjs';
import { expect, it } from 'vitest';
import { marbles } from './marbles.js';

export interface Contract {
  /** The operator under test, over strings. Called once a test. */
  readonly operator: () => OperatorFunction<string, unknown>;
  /** How many values it may read of an endless synchronous source to emit three. */
  readonly readsForThree: number;
  /** What an empty source becomes. Default: empty. */
  readonly empty?: string;
  /** When it subscribes to an empty source. Default: once. */
  readonly emptySubs?: string | string[];
}

/** A synchronous source that would never end, and how much of it was read. */
export function firehose(): {
  readonly source: ReturnType<typeof from<Iterable<string>>>;
  readonly read: () => number;
} {
  let read = 0;
  function* values() {
    // Far beyond what any test wants, so that a source that is not stopped fails the test instead of hanging it.
    while (read < 100_000) yield String(read++);
  }
  return { source: from(values()), read: () => read };
}

/** The manners every operator has. What is particular to one is in its own tests. */
export function keepsContract({ operator, readsForThree, empty = '--|', emptySubs = '^-!' }: Contract): void {
  it(
    'completes with an empty source',
    marbles((m) => {
      const source = m.cold('  --|');
      m.expect(source.pipe(operator())).toBeObservable(empty);
      m.expect(source).toHaveSubscriptions(emptySubs);
    }),
  );

  it(
    'stays silent with a silent source',
    marbles((m) => {
      const source = m.cold('  ----');
      const unsub = '          ---!';
      const subs = '           ^--!';
      const expected = '       ----';
      m.expect(source.pipe(operator()), unsub).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'passes an error of the source',
    marbles((m) => {
      const source = m.cold('  --#');
      const subs = '           ^-!';
      const expected = '       --#';
      m.expect(source.pipe(operator())).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'unsubscribes from the source when unsubscribed, and emits nothing more',
    marbles((m) => {
      const source = m.hot('   --a-a-a-|');
      const unsub = '          -!';
      const subs = '           ^!';
      const expected = '       ---------';
      m.expect(source.pipe(operator()), unsub).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'starts afresh for every subscriber',
    marbles((m) => {
      const result = m.cold('  -a-b-c-(de)-f-|').pipe(operator());
      m.scheduler.expectObservable(result).toEqual(result);
    }),
  );

  it('stops a synchronous source when its subscriber has enough', () => {
    const { source, read } = firehose();
    const seen: unknown[] = [];
    source.pipe(operator(), take(3)).subscribe((value) => seen.push(value));
    expect(seen).toHaveLength(3);
    expect(read()).toBeLessThanOrEqual(readsForThree);
  });
}
