import {
  defer,
  retry,
  throwError,
  timer,
  type MonoTypeOperatorFunction,
  type Observable,
  type SchedulerLike,
} from 'rxjs';
import { BILLING_RETRY_MS, type Billing } from './Billing.js';
import type { TinkerError } from '../errors.js';
import type { EventBus, WorkKind } from '../events.js';
import { meaningOf, type Phase } from './failure.js';

const LONGEST_WAIT_MS = 30_000;
const GIVE_UP_AFTER_MS = 5 * 60_000;
const MOST_PROXY_REFUSALS = 16;
const PROXY_WAIT_MS = 1000;

/** What trying again needs of a connection. */
interface Resending {
  readonly scheduler: SchedulerLike;
  readonly events: EventBus;
  readonly billing: Billing;
}

/** 1 s, 2 s, 4 s, … up to 30 s. */
export const backoffMs = (failures: number): number => Math.min(1000 * 2 ** failures, LONGEST_WAIT_MS);

/** What the server asks for, else the usual wait. */
export const delayFor = (error: TinkerError, failures: number): number => error.retryAfterMs ?? backoffMs(failures);

/**
 * Subscribes again after each passing failure: after the server's own delay or 1, 2, 4 … 30 seconds, for five minutes
 * in all; after a proxy's empty refusal every second, sixteen times; during a billing pause every five seconds, for as
 * long as the service allows. Other failures pass through. Events name the kind of work, where it is known.
 */
export function resend<T>(
  connection: Resending,
  path: string,
  phase: Phase = 'send',
  kind: Partial<WorkKind> = {},
): MonoTypeOperatorFunction<T> {
  return (source) =>
    defer(() => {
      const startedMs = connection.scheduler.now();
      let attempts = 0;
      let failures = 0;
      let refusals = 0;
      let billedMs = 0;
      const again = (error: TinkerError, delayMs: number): Observable<unknown> => {
        connection.events.emit({ type: 'request-retry', path, attempt: ++attempts, delayMs, error, ...kind });
        return timer(delayMs, connection.scheduler);
      };
      return source.pipe(
        retry({
          delay: (error: TinkerError) => {
            const nowMs = connection.scheduler.now();
            switch (meaningOf(error, phase)) {
              case 'billing':
                if (!connection.billing.mayWait(error.message)) return throwError(() => error);
                billedMs += BILLING_RETRY_MS;
                return timer(BILLING_RETRY_MS, connection.scheduler);
              case 'proxy':
                // A new connection is the cure, not time; the waits of other failures would use up the five minutes.
                if (++refusals > MOST_PROXY_REFUSALS) return throwError(() => error);
                return again(error, PROXY_WAIT_MS);
              case 'backoff':
              case 'again':
                break;
              default:
                return throwError(() => error);
            }
            const leftMs = startedMs + billedMs + GIVE_UP_AFTER_MS - nowMs;
            if (leftMs <= 0) return throwError(() => error);
            const delayMs = Math.min(delayFor(error, failures), leftMs);
            failures++;
            return again(error, delayMs);
          },
        }),
      );
    });
}
