import {
  AsyncSubject,
  Subject,
  catchError,
  concat,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  finalize,
  ignoreElements,
  interval,
  map,
  merge,
  of,
  repeat,
  takeUntil,
  tap,
  timer,
  type Observable,
  type Subscription,
} from 'rxjs';
import { TelemetrySendRequest } from '../../wire/session.js';
import type { Connection } from '../connection/Connection.js';
import type { TinkerError } from '../errors.js';
import type { TinkerEvent } from '../events.js';
import { reportOf, timedeltaText, type Report } from './telemetryEvents.js';

const MOST_WAITING = 10_000;
const BATCH = 100;
const FLUSH_MS = 10_000;
const TIMEOUT_MS = 5000;
const DRAIN_MS = 30_000;
/** How often, and how soon again, the last reports are tried while the client closes. */
const LAST_TRIES = 3;
const LAST_RETRY_MS = 1000;
const SAME_QUEUE_MS = 60_000;
const MOST_QUEUES = 1000;

/** Reports on their way: the same under the same key until they arrive. */
interface Batch {
  readonly events: readonly object[];
  readonly key: string;
}

/**
 * Tells the service how its client fares, as the Python SDK does: when the session starts and ends, which calls failed and
 * by whose fault, and what was waited for. It never blocks and never fails a call. A batch that did not arrive is kept for
 * the next try; what can never arrive is dropped, and an event says so.
 */
export class Telemetry {
  readonly #waiting: object[] = [];
  readonly #soon = new Subject<void>();
  readonly #draining = new Subject<void>();
  readonly #drained = new AsyncSubject<void>();
  readonly #running: Subscription;
  readonly #startedMs: number;
  /** When a queue's state was last reported, by what was said of it. */
  readonly #queues = new Map<string, number>();
  #batch: Batch | undefined;
  /** Whether the last try failed: until the next regular one nothing is hurried. */
  #failed = false;
  #reason = '';
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
    const regularly = interval(FLUSH_MS, connection.background).pipe(tap(() => (this.#failed = false)));
    this.#running = merge(
      connection.events.notable.pipe(
        map((event) => this.#report(event)),
        ignoreElements(),
        takeUntil(this.#draining),
      ),
      // The last flush waits its turn: what is on its way when the client closes arrives as well.
      concat(
        merge(regularly, this.#soon).pipe(
          takeUntil(this.#draining),
          concatMap(() => this.#flush()),
        ),
        this.#lastFlush(),
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
      const duration = timedeltaText(this.connection.scheduler.now() - this.#startedMs);
      this.#add({ event: 'SESSION_END', severity: 'INFO', duration });
      this.#draining.next();
      return this.#drained.pipe(
        takeUntil(timer(DRAIN_MS, this.connection.scheduler)),
        defaultIfEmpty(undefined),
        finalize(() => this.#running.unsubscribe()),
      );
    });
  }

  #report(event: TinkerEvent): void {
    if (event.type === 'queue-state' && this.#isSaid(`${event.target} ${event.state} ${event.reason}`, event.atMs))
      return;
    const report = reportOf(event);
    if (report === undefined) return;
    this.#add(report);
    // A failed call may be a program's last.
    if (event.type === 'request-failed' && !this.#failed && this.#batch === undefined) this.#soon.next();
  }

  /** Thousands of samples wait in one queue; the service knows its own state well enough. */
  #isSaid(queue: string, atMs: number): boolean {
    if (Math.abs(atMs - (this.#queues.get(queue) ?? -Infinity)) < SAME_QUEUE_MS) return true;
    if (this.#queues.size >= MOST_QUEUES) this.#queues.clear();
    this.#queues.set(queue, atMs);
    return false;
  }

  #add(report: Report): void {
    const { timeOfDay, uuid } = this.connection;
    if (this.#waiting.length >= MOST_WAITING) {
      this.#refused++;
      return;
    }
    this.#waiting.push({
      event_id: uuid(),
      event_session_index: this.#index++,
      timestamp: new Date(timeOfDay.now()).toISOString(),
      ...report,
    });
  }

  /** Sends everything that waits, batch after batch, up to the first that does not arrive. */
  #flush(): Observable<never> {
    return defer(() => {
      if (this.#refused > 0) this.#sayDropped(this.#refused, 'too many were waiting');
      this.#refused = 0;
      return this.#send().pipe(repeat({ delay: () => (this.#failed || this.#waiting.length === 0 ? EMPTY : of(0)) }));
    });
  }

  #lastFlush(): Observable<never> {
    const { scheduler } = this.connection;
    const anew = defer(() => {
      this.#failed = false;
      return this.#flush();
    });
    const again = (): Observable<unknown> => (this.#failed ? timer(LAST_RETRY_MS, scheduler) : EMPTY);
    return concat(
      anew.pipe(repeat({ count: LAST_TRIES, delay: again })),
      defer(() => {
        const left = (this.#batch?.events.length ?? 0) + this.#waiting.length;
        if (left > 0) this.#sayDropped(left, this.#reason);
        return EMPTY;
      }),
    );
  }

  #sayDropped(events: number, reason: string): void {
    this.connection.events.emit({ type: 'telemetry-dropped', events, reason });
  }

  #send(): Observable<never> {
    return defer(() => {
      const { sdkVersion, uuid } = this.connection;
      const batch = (this.#batch ??= { events: this.#waiting.splice(0, BATCH), key: uuid() });
      if (batch.events.length === 0) {
        this.#batch = undefined;
        return EMPTY;
      }
      const json = TelemetrySendRequest.encode({
        events: batch.events as Record<string, unknown>[],
        platform: this.platform,
        sdkVersion,
        sessionId: this.sessionId,
        processUuid: this.processUuid,
      });
      return this.connection
        .attempt({ path: 'telemetry', lane: 'telemetry', json, timeoutMs: TIMEOUT_MS }, batch.key)
        .pipe(
          tap({ complete: () => (this.#batch = undefined) }),
          ignoreElements(),
          catchError((error: TinkerError) => {
            this.#failed = error.retryable;
            this.#reason = error.message;
            if (!error.retryable) {
              this.#batch = undefined;
              this.#sayDropped(batch.events.length, error.message);
            }
            return EMPTY;
          }),
        );
    });
  }
}
