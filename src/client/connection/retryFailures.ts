import { defer, retry, type MonoTypeOperatorFunction, type Observable, type SchedulerLike } from 'rxjs';
import { longTimer } from '../../support/longTimer.js';
import { BILLING_RETRY_MS, type Billing } from './Billing.js';
import { APIStatusError, type TinkerError } from '../errors.js';
import type { EventBus, TinkerEvent } from '../events.js';
import { classifyFailure, type Meaning, type Phase } from './failure.js';

const LONGEST_WAIT_MS = 30_000;
const SEND_GIVE_UP_MS = 5 * 60_000;
const MOST_PROXY_REFUSALS = 16;
const PROXY_WAIT_MS = 1000;
/** A 400 to a poll counts only when it repeats: some proxies inject one. */
const MOST_BAD_POLLS = 3;
const SERVER_ERRORS_AT_ONCE = 2;

/** What trying again needs of a connection. */
interface Retrying {
  readonly scheduler: SchedulerLike;
  readonly events: EventBus;
  readonly billing: Billing;
}

export interface RetryOptions {
  /** What is tried again: it decides what a failure means, and for how long to continue. */
  readonly phase: Phase;
  readonly path: string;
  /** What the events of its retries name. */
  readonly about?: Partial<
    Pick<Extract<TinkerEvent, { type: 'request-retry' }>, 'requestType' | 'target' | 'requestId'>
  >;
  /** Called when too much is sampled at once. It pauses all sampling; then the request may try again. Default: such a failure is final. */
  readonly onThrottle?: (error: TinkerError) => void;
}

/** How long to wait after a failure, in milliseconds; undefined if it is final. */
export type DelayAfter = (error: TinkerError) => number | undefined;

/**
 * Subscribes again after each temporary failure, as {@link failureDelays} says. Everything else passes through. Counts start anew with
 * each subscription.
 */
export function retryFailures<T>(connection: Retrying, options: RetryOptions): MonoTypeOperatorFunction<T> {
  return (source) =>
    defer(() => {
      const startedMs = connection.scheduler.now();
      let delayAfter: DelayAfter | undefined;
      // Made at the first failure: most requests have none.
      const delay = (error: TinkerError): Observable<unknown> =>
        wait((delayAfter ??= failureDelays(connection, options, startedMs)), error, connection.scheduler);
      return source.pipe(retry({ delay }));
    });
}

/** The wait after a failure. @throws the failure if it is final. */
export function wait(delayAfter: DelayAfter, error: TinkerError, scheduler: SchedulerLike): Observable<unknown> {
  const delayMs = delayAfter(error);
  if (delayMs === undefined) throw error;
  return longTimer(delayMs, scheduler);
}

/**
 * How long a request waits after each of its failures. What a failure means is up to {@link classifyFailure}:
 *
 * - `backoff`: as long as the server asks for, else 1, 2, 4 … 30 seconds. A send is tried for five minutes in all, a poll forever.
 * - `again`: a poll at once, twice in a row, then as above.
 * - `reset`: once at once, then as above.
 * - `proxy`: every second, sixteen times; a poll at once, three times.
 * - `throttle`: at once; its turn comes when the pause is over.
 * - `billing`: every five seconds, for as long as the service allows, which counts for nothing else.
 */
export function failureDelays(
  { scheduler, events, billing }: Retrying,
  { phase, path, about = {}, onThrottle }: RetryOptions,
  startedMs: number,
): DelayAfter {
  const isPoll = phase === 'poll';
  let attempts = 0;
  let backoffs = 0;
  let serverErrors = 0;
  let refusals = 0;
  let resets = 0;
  let billedMs = 0;

  const backoff = (error: TinkerError, failures: number): number | undefined => {
    const leftMs = isPoll ? Infinity : startedMs + billedMs + SEND_GIVE_UP_MS - scheduler.now();
    const ownMs = Math.min(1000 * 2 ** failures, LONGEST_WAIT_MS);
    return leftMs <= 0 ? undefined : Math.min(error.retryAfterMs ?? ownMs, leftMs);
  };
  const delayOf = (error: TinkerError, meaning: Meaning): number | undefined => {
    // Any HTTP answer except a 429 proves that the connection works again.
    if (isPoll && error instanceof APIStatusError && error.status !== 429) backoffs = 0;
    switch (meaning) {
      case 'backoff':
        return backoff(error, backoffs++);
      case 'again':
        return serverErrors++ < SERVER_ERRORS_AT_ONCE ? 0 : backoff(error, serverErrors - SERVER_ERRORS_AT_ONCE - 1);
      case 'reset':
        return resets++ === 0 ? 0 : backoff(error, backoffs++);
      case 'proxy':
      case 'doubtful':
        if (++refusals > (isPoll ? MOST_BAD_POLLS : MOST_PROXY_REFUSALS)) return undefined;
        return isPoll ? 0 : PROXY_WAIT_MS;
      default:
        return undefined;
    }
  };

  return (error) => {
    const meaning = classifyFailure(error, phase);
    if (meaning === 'billing' && billing.mayWait(error.message)) {
      billedMs += BILLING_RETRY_MS;
      return BILLING_RETRY_MS;
    }
    if (meaning === 'throttle' && onThrottle !== undefined) {
      onThrottle(error);
      return 0;
    }
    const delayMs = delayOf(error, meaning);
    if (delayMs !== undefined)
      events.emit({ type: 'request-retry', path, attempt: ++attempts, delayMs, error, ...about });
    return delayMs;
  };
}
