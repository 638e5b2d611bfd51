import {
  AsyncSubject,
  Subject,
  catchError,
  concat,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  filter,
  finalize,
  ignoreElements,
  interval,
  map,
  merge,
  of,
  repeat,
  takeUntil,
  timer,
  type Observable,
  type Subscription,
} from 'rxjs';
import { TelemetrySendRequest } from '../../wire/session.js';
import type { Connection } from '../connection/Connection.js';
import { isUserError, type TinkerError } from '../errors.js';
import type { TinkerEvent } from '../events.js';

const MOST_WAITING = 10_000;
const BATCH = 100;
const FLUSH_MS = 10_000;
const TIMEOUT_MS = 5000;
const DRAIN_MS = 30_000;

/** Events that help the service's people: failures and waits, not every request. */
const REPORTED: ReadonlySet<TinkerEvent['type']> = new Set([
  'request-retry',
  'request-failed',
  'sample-resubmitted',
  'dispatch-paused',
  'billing-paused',
  'heartbeat-missed',
]);

/** Tells the service how its client fares. It never blocks, never fails a call, and carries neither headers nor data. */
export class Telemetry {
  readonly #waiting: object[] = [];
  readonly #draining = new Subject<void>();
  readonly #drained = new AsyncSubject<void>();
  readonly #running: Subscription;
  readonly #startedMs: number;
  #index = 0;
  #refused = 0;

  constructor(
    readonly connection: Connection,
    readonly sessionId: string,
    readonly processUuid: string,
    readonly platform: string,
  ) {
    this.#startedMs = connection.scheduler.now();
    this.#add({ event: 'SESSION_START', severity: 'INFO' });
    this.#running = merge(
      connection.events.events$.pipe(
        filter((event) => REPORTED.has(event.type)),
        map((event) => this.#report(event)),
        ignoreElements(),
        takeUntil(this.#draining),
      ),
      // The last flush waits its turn: what is on its way when the client closes arrives as well.
      concat(interval(FLUSH_MS, connection.background).pipe(takeUntil(this.#draining)), of(0)).pipe(
        concatMap(() => this.#flush()),
      ),
    )
      .pipe(
        ignoreElements(),
        catchError(() => EMPTY),
      )
      .subscribe(this.#drained);
  }

  /** Sends what is left, for half a minute at the most. */
  drain(): Observable<void> {
    return defer(() => {
      const seconds = (this.connection.scheduler.now() - this.#startedMs) / 1000;
      this.#add({ event: 'SESSION_END', severity: 'INFO', duration: `${seconds.toFixed(3)}s` });
      this.#draining.next();
      return this.#drained.pipe(
        takeUntil(timer(DRAIN_MS, this.connection.scheduler)),
        defaultIfEmpty(undefined),
        finalize(() => this.#running.unsubscribe()),
      );
    });
  }

  /** Sends everything that waits, batch after batch. */
  #flush(): Observable<never> {
    return defer(() => {
      if (this.#refused > 0) this.#sayDropped(this.#refused, 'too many were waiting');
      this.#refused = 0;
      return this.#send().pipe(repeat({ delay: () => (this.#waiting.length > 0 ? of(0) : EMPTY) }));
    });
  }

  #sayDropped(events: number, reason: string): void {
    this.connection.events.emit({ type: 'telemetry-dropped', events, reason });
  }

  #report(event: TinkerEvent): void {
    const { type, atMs: _, ...rest } = event;
    const error = 'error' in rest ? rest.error : undefined;
    const data = Object.fromEntries(
      Object.entries(rest).map(([key, value]) => [
        key,
        key === 'error' ? { code: error?.code, message: error?.message, retryable: error?.retryable } : value,
      ]),
    );
    this.#add({
      event: 'GENERIC_EVENT',
      event_name: `tinker-rx.${type}`,
      event_data: data,
      severity: error !== undefined && !isUserError(error) && !error.retryable ? 'ERROR' : 'WARNING',
    });
  }

  #add(fields: object): void {
    const { scheduler, uuid } = this.connection;
    if (this.#waiting.length >= MOST_WAITING) {
      this.#refused++;
      return;
    }
    this.#waiting.push({
      event_id: uuid(),
      event_session_index: this.#index++,
      timestamp: new Date(scheduler.now()).toISOString(),
      ...fields,
    });
  }

  #send(): Observable<never> {
    return defer(() => {
      const events = this.#waiting.splice(0, BATCH);
      if (events.length === 0) return EMPTY;
      const { sdkVersion } = this.connection;
      const json = TelemetrySendRequest.encode({
        events: events as Record<string, unknown>[],
        platform: this.platform,
        sdkVersion,
        sessionId: this.sessionId,
        processUuid: this.processUuid,
      });
      return this.connection
        .attempt({ path: 'telemetry', lane: 'telemetry', json, timeoutMs: TIMEOUT_MS }, this.connection.uuid())
        .pipe(
          ignoreElements(),
          catchError((error: TinkerError) => {
            this.#sayDropped(events.length, error.message);
            return EMPTY;
          }),
        );
    });
  }
}
