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

/** One sample: what submits it, each time as a new request, and what makes its result of the response. */
export interface Submission<A> extends FutureProgress {
  submit(accepting: FutureProgress): Observable<A>;
  finish(response: A): A;
}

/**
 * A sample and, after a passing failure or a promise that the service lost, the same sample as a new request, for as
 * long as it takes: 500 ms later, then twice as long each time up to ten seconds. Other failures pass through.
 */
export function resubmitting<A>(
  connection: Connection,
  target: string,
  options: SamplingRetryOptions = {},
  sample: Submission<A>,
): Observable<A> {
  const finish = (response: A): A => sample.finish(response);
  const { enabled = true } = options;
  if (!enabled || connection.config.sampleNoRetries) return onAnswer(sample.submit(sample), finish);
  const attempts = new Attempts(sample);
  // Nearly every sample succeeds at the first try: the operators for a second one are built when needed.
  return onAnswer(attempts.next(), finish, (failure) =>
    failedOnce(failure, () => attempts.next()).pipe(
      retry({
        delay: (error: TinkerError, count) => {
          const meaning = meaningOf(error, attempts.phase);
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

/** The attempts at one sample, and how far the last one came. */
class Attempts<A> implements FutureProgress {
  /** A lost promise can be replaced by a new request; a session that is gone cannot. */
  phase: Phase = 'send';

  constructor(readonly sample: Submission<A>) {}

  next(): Observable<A> {
    this.phase = 'send';
    return this.sample.submit(this);
  }

  accepted(requestId: string): void {
    this.phase = 'poll';
    this.sample.accepted(requestId);
  }
}

function waitMs(
  count: number,
  { delayMs = 500, maxDelayMs = 10_000, jitter = 0.25 }: SamplingRetryOptions,
  random: () => number,
): number {
  const exact = Math.min(delayMs * 2 ** (count - 1), maxDelayMs);
  return Math.min(exact * (1 + jitter * (2 * random() - 1)), maxDelayMs);
}
