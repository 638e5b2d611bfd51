import { map, retry, throwError, timer, type Observable } from 'rxjs';
import type { Connection } from '../connection/Connection.js';
import type { TinkerError } from '../errors.js';
import { failedOnce } from '../connection/failedOnce.js';
import { meaningOf, type Phase } from '../connection/failure.js';
import { onAnswer } from '../connection/onAnswer.js';
import type { FutureProgress } from '../TinkerFuture.js';

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

/**
 * A sample and, after a passing failure or a promise that the service lost, the same sample as a new request, for as
 * long as it takes: 500 ms later, then twice as long each time up to ten seconds. `finish` makes the result of the
 * response. Other failures pass through.
 */
export function resubmitting<A>(
  connection: Connection,
  target: string,
  options: SamplingRetryOptions = {},
  submit: (progress: FutureProgress) => Observable<A>,
  finish: (response: A) => A,
  progress: FutureProgress,
): Observable<A> {
  const { enabled = true } = options;
  if (!enabled || connection.config.sampleNoRetries) return onAnswer(submit(progress), finish);
  // A lost promise can be replaced by a new request; a session that is gone cannot.
  let phase: Phase = 'send';
  const accepting: FutureProgress = {
    accepted: (requestId) => {
      phase = 'poll';
      progress.accepted(requestId);
    },
  };
  const attempt = (): Observable<A> => {
    phase = 'send';
    return submit(accepting);
  };
  // Nearly every sample succeeds at the first try: the operators for a second one are built when needed.
  return onAnswer(attempt(), finish, (failure) =>
    failedOnce(failure, attempt).pipe(
      retry({
        delay: (error: TinkerError, count) => {
          const meaning = meaningOf(error, phase);
          // These have a limit of their own, which is reached.
          if (meaning === 'fatal' || meaning === 'doubtful' || meaning === 'billing' || meaning === 'proxy')
            return throwError(() => error);
          const delayMs = waitMs(count, options, connection.random);
          connection.events.emit({ type: 'sample-resubmitted', target, attempt: count, delayMs, error });
          return timer(delayMs, connection.scheduler);
        },
      }),
      map(finish),
    ),
  );
}

function waitMs(
  count: number,
  { delayMs = 500, maxDelayMs = 10_000, jitter = 0.25 }: SamplingRetryOptions,
  random: () => number,
): number {
  const exact = Math.min(delayMs * 2 ** (count - 1), maxDelayMs);
  return Math.min(exact * (1 + jitter * (2 * random() - 1)), maxDelayMs);
}
