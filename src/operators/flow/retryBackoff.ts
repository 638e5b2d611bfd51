import { asyncScheduler, defer, identity, type MonoTypeOperatorFunction, retry, type SchedulerLike, tap } from 'rxjs';
import { checkAtLeast } from '../../support/checks.js';
import { currentGate, underGate } from '../pressure/gate.js';
import { longTimer } from '../../support/longTimer.js';
import { systemRandom } from '../../support/random.js';
import type { TokenBucket } from './TokenBucket.js';

/** Options of `retryBackoff`. */
export interface RetryBackoffOptions {
  /** The wait before the first retry, ≥ 0. Default 500. */
  readonly initialMs?: number;
  /** What each further wait is multiplied by, ≥ 1. Default 2. */
  readonly factor?: number;
  /** The longest wait of our own. Default 10 000. */
  readonly maxMs?: number;
  /** How far a wait may stray, as a share of it, 0 to 1: 0.25 (default) is ±25 %. */
  readonly jitter?: number;
  /** How many retries in a row. Default: no limit. */
  readonly maxRetries?: number;
  /** How long after subscribe, or after the last value, a retry may still start. Default: no limit. */
  readonly deadlineMs?: number;
  /**
   * Retries that all share who are given it: each takes 1, and without one left the error is passed on. Keeps a service that is down
   * from being asked many times more. Default: no limit.
   */
  readonly budget?: TokenBucket;
  /** Whether to try again after this error. Default: what the error's own `retryable` says. */
  readonly retryable?: (error: unknown) => boolean;
  /** The wait the server asked for, used as it is. Default: the error's `retryAfterMs`, if it has one. */
  readonly serverDelayMs?: (error: unknown) => number | undefined;
  /** Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
  /** Numbers in [0, 1) for the jitter. Default: the system's. */
  readonly random?: () => number;
}

/**
 * Subscribes again after a retryable error, waiting longer each time.
 *
 * ```
 * source    -a-#                   subscribed three times
 *                --#
 *                      -b-|
 * result    -a----------b-|        initialMs 2, factor 2
 * ```
 * A value sets the count, the wait and the deadline back. The error is passed on, at once, if it is not retryable,
 * if the retries or the budget are used up, or if the next one would start after the deadline. Completion ends it. Unsubscribing
 * stops the wait. Holds nothing.
 */
export function retryBackoff<T>({
  initialMs = 500,
  factor = 2,
  maxMs = 10_000,
  jitter = 0.25,
  maxRetries = Infinity,
  deadlineMs = Infinity,
  budget,
  retryable = saysRetryable,
  serverDelayMs = saysDelay,
  scheduler = asyncScheduler,
  random = systemRandom,
}: RetryBackoffOptions = {}): MonoTypeOperatorFunction<T> {
  checkAtLeast({ initialMs }, 0);
  checkAtLeast({ factor }, 1);
  checkAtLeast({ maxMs }, 0);
  if (!(jitter >= 0 && jitter <= 1)) throw new RangeError(`jitter must be from 0 to 1, got ${jitter}`);
  checkAtLeast({ maxRetries, deadlineMs }, 0);
  return (source) =>
    defer(() => {
      let since = scheduler.now();
      const delay = (error: unknown, attempt: number) => {
        if (attempt > maxRetries || !retryable(error)) throw error;
        const own = Math.min(maxMs, initialMs * factor ** (attempt - 1)) * (1 + jitter * (2 * random() - 1));
        const delayMs = serverDelayMs(error) ?? own;
        const isLate = scheduler.now() + delayMs - since > deadlineMs;
        if (isLate || budget?.tryTake(1) === false) throw error;
        return longTimer(delayMs, scheduler);
      };
      return underGate(currentGate(), source).pipe(
        // Reading the clock takes longer than the rest.
        deadlineMs === Infinity ? identity : tap(() => (since = scheduler.now())),
        retry({ delay, resetOnSuccess: true }),
      );
    });
}

function saysRetryable(error: unknown): boolean {
  return (error as { retryable?: unknown } | null | undefined)?.retryable === true;
}

function saysDelay(error: unknown): number | undefined {
  const delayMs = (error as { retryAfterMs?: unknown } | null | undefined)?.retryAfterMs;
  return typeof delayMs === 'number' && delayMs >= 0 ? delayMs : undefined;
}
