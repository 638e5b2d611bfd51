import { checkIntegers } from '../../support/checks.js';
import { isTinkerError } from '../../wire/tinkerError.js';

/** An item that failed for good, and why. */
export interface DeadLetter<P = unknown> {
  /** The source's value. */
  readonly item: P;
  /** Its last error. */
  readonly error: unknown;
  /** How often it was tried: ≥ 1. */
  readonly attempts: number;
}

/** What to do about an item that has failed: end the stream, or continue without it. */
export interface AfterFailure<P> {
  /**
   * 'fail' ends the stream with the error, 'skip' continues without the item. Default: 'skip' with `deadLetters`, and in `rollouts` and
   * evaluations; else 'fail'.
   */
  readonly then?: 'fail' | 'skip';
  /** Told of every item that failed for good, to count or to keep it: `toDeadLetters(path)` of `tinker-rx/sinks` writes a file. */
  readonly deadLetters?: (letter: DeadLetter<NoInfer<P>>) => void;
}

/**
 * What to do about an item that fails: `sampleFrom`, `rollouts` and the evaluations take it as `onFailure`.
 *
 * ```ts
 * const onFailure = { retries: 2, deadLetters: toDeadLetters('dead.jsonl') };
 * ```
 * 'fail' ends the stream with the error, 'skip' continues without the item. A failure that every item would meet, such as a
 * refused key or a closed client, ends the stream under every policy.
 */
export type FailurePolicy<P> =
  | 'fail'
  | 'skip'
  | (AfterFailure<P> & {
      /** How often an item is tried again before it counts as failed: an integer ≥ 0. Default 0. */
      readonly retries?: number;
    });

/** @internal A policy with its defaults. */
export interface FailurePlan<P> extends AfterFailure<P> {
  readonly retries: number;
  readonly then: 'fail' | 'skip';
}

/** @internal Fills in the defaults. @throws RangeError for retries that are no integer ≥ 0 */
export function failurePlan<P>(policy: FailurePolicy<P>, usual: 'fail' | 'skip' = 'fail'): FailurePlan<P> {
  if (typeof policy === 'string') return { retries: 0, then: policy };
  const { retries = 0, deadLetters, then = deadLetters === undefined ? usual : 'skip' } = policy;
  checkIntegers({ retries }, 0);
  return { retries, then, ...(deadLetters === undefined ? {} : { deadLetters }) };
}

const FATAL: ReadonlySet<string> = new Set([
  'authentication',
  'permission_denied',
  'billing',
  'closed',
  'unsupported_version',
]);

/** @internal Whether every other item would meet this failure too. */
export function failsForAll(error: unknown): boolean {
  return isTinkerError(error) && FATAL.has(error.code);
}
