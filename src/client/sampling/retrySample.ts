import { defer, retry, type Observable } from 'rxjs';
import type { Connection } from '../connection/Connection.js';
import { classifyFailure, type Meaning, type Phase } from '../connection/failure.js';
import { wait } from '../connection/retryFailures.js';
import type { TinkerError } from '../errors.js';
import type { OnAccepted } from '../TinkerFuture.js';

/** How samples are retried. The defaults suit most programs. */
export interface SamplingRetryOptions {
  /** Fail everything as stuck after this long without any sample finishing. Default two hours. */
  readonly progressTimeoutMs?: number;
  /** First wait; each further one is twice as long. Default 500. */
  readonly delayMs?: number;
  /** Longest wait. Default 10,000. */
  readonly maxDelayMs?: number;
  /** Waits vary by this fraction up and down. Default 0.25. */
  readonly jitter?: number;
  /** Default true. */
  readonly enabled?: boolean;
}

/** A sample that failed so is submitted again. The others have reached their own limit, or are final. */
const TEMPORARY: ReadonlySet<Meaning> = new Set(['backoff', 'again', 'reset', 'throttle', 'resubmit']);

/**
 * A sample and, after a temporary failure or a promise that the service lost, the same sample as a new request, for as
 * long as it takes: 500 ms later, then twice as long each time up to ten seconds. Other failures pass through.
 */
export function retrySample<A>(
  connection: Connection,
  target: string,
  options: SamplingRetryOptions,
  submit: (onAccepted: OnAccepted) => Observable<A>,
  onAccepted: OnAccepted,
): Observable<A> {
  const { scheduler, events, random } = connection;
  // Each submission takes a number, so a sample that is cancelled while it waits for its place makes none.
  if (options.enabled === false || connection.config.sampleNoRetries) return defer(() => submit(onAccepted));
  // A lost result can be replaced by a new request; a session that is gone cannot.
  let phase: Phase = 'send';
  const accepted: OnAccepted = (requestId) => {
    phase = 'poll';
    onAccepted(requestId);
  };
  const attempt = defer(() => {
    phase = 'send';
    return submit(accepted);
  });
  const delayAfter = (error: TinkerError, count: number): number | undefined => {
    if (!TEMPORARY.has(classifyFailure(error, phase))) return undefined;
    const waitMs = backoffMs(count, options, random);
    events.emit({ type: 'sample-resubmitted', target, attempt: count, delayMs: waitMs, error });
    return waitMs;
  };
  const delay = (error: TinkerError, count: number): Observable<unknown> =>
    wait((thrown) => delayAfter(thrown, count), error, scheduler);
  return attempt.pipe(retry({ delay, resetOnSuccess: true }));
}

function backoffMs(
  count: number,
  { delayMs = 500, maxDelayMs = 10_000, jitter = 0.25 }: SamplingRetryOptions,
  random: () => number,
): number {
  const exact = Math.min(delayMs * 2 ** (count - 1), maxDelayMs);
  return Math.min(exact * (1 + jitter * (2 * random() - 1)), maxDelayMs);
}
