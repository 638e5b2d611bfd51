import { isDeepStrictEqual } from 'node:util';
import { type RunHelpers, TestScheduler } from 'rxjs/testing';
import { checkPositive } from '../support/checks.js';
import { HOUR_MS } from './internal/endSomeTime.js';
import { inspectShort } from './internal/inspectShort.js';

/** Options of `runMarbles`. */
export interface RunMarblesOptions {
  /** Compares what came with what was expected, and throws: `(a, e) => expect(a).toStrictEqual(e)`. Default: throws an Error with both. */
  readonly assertDeepEqual?: (actual: unknown, expected: unknown) => void;
  /** Virtual time after which the run ends, in milliseconds: > 0. Default an hour. */
  readonly limitMs?: number;
}

/**
 * A marble test in virtual time that always ends: RxJS's `TestScheduler.run` continues until nothing is left to do, which
 * with a client, whose heartbeat never ends, is never.
 *
 * ```ts
 * it('waits', () => runMarbles(({ cold, expectObservable }) => {
 *   expectObservable(cold('-a-|').pipe(delay(2))).toBe('---(a|)');
 * }));
 * ```
 * @throws what `assertDeepEqual` throws, and an Error if nothing was expected: such a test would pass whatever happens.
 */
export function runMarbles(
  body: (helpers: RunHelpers & { readonly scheduler: TestScheduler }) => void,
  { assertDeepEqual = defaultAssert, limitMs = HOUR_MS }: RunMarblesOptions = {},
): void {
  checkPositive({ limitMs });
  let compared = 0;
  const scheduler = new TestScheduler((actual, expected) => {
    compared++;
    assertDeepEqual(actual, expected);
  });
  scheduler.run((helpers) => {
    scheduler.maxFrames = limitMs;
    body({ ...helpers, scheduler });
  });
  if (compared === 0) throw new Error('the marble test expects nothing: call expectObservable or expectSubscriptions');
}

function defaultAssert(actual: unknown, expected: unknown): void {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new Error(`expected ${inspectShort(expected)}\n     got ${inspectShort(actual)}`);
}
