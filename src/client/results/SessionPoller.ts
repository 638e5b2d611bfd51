import type { Subscriber, Subscription } from 'rxjs';
import {
  Observable,
  concatMap,
  defer,
  ignoreElements,
  map,
  repeat,
  retry,
  takeUntil,
  takeWhile,
  timer,
  of,
} from 'rxjs';
import { FuturesRetrieveRequest, FuturesRetrieveResponse, type FutureCompletion } from '../../wire/futures.js';
import { decodeJson, parseBody } from '../connection/answer.js';
import { BILLING_RETRY_MS } from '../connection/Billing.js';
import type { Connection } from '../connection/Connection.js';
import { APIStatusError, type TinkerError } from '../errors.js';
import { classifyFailure } from '../connection/failure.js';
import { wait } from '../connection/retryFailures.js';
import { QueueReports } from './queueReports.js';
import { SHORTEST_POLL_MS } from './awaitResult.js';

const RETRY_MS = 1000;
/** A 400 counts only when it repeats: some proxies inject one. */
const MOST_BAD_REQUESTS = 3;
const QUIET_MS = 30_000;

interface Waiter {
  readonly sinceMs: number;
  readonly subscriber: Subscriber<number | undefined>;
}

/** The size of a result; 0 where the service did not say. */
function tell(subscriber: Subscriber<number | undefined>, bytes: number): void {
  subscriber.next(bytes === 0 ? undefined : bytes);
  subscriber.complete();
}

/**
 * One poll for all waiting samples of a sampling session, where the service offers it, instead of one each.
 *
 * It polls while a call waits or a fetched result is still to be reported, and is idle otherwise. The session poll
 * itself says nothing about queues, so while samples wait and none finishes, the oldest is asked for alone now and
 * then, only to learn why: silence is what users report as "it hangs".
 */
export class SessionPoller {
  readonly #waiters = new Map<string, Waiter>();
  readonly #early = new Map<string, number>();
  readonly #retrieved = new Set<string>();
  readonly #abandoned = new Set<string>();
  #cursor = 0;
  #badRequests = 0;
  #progressMs = 0;
  #notBeforeMs = 0;
  #polling = false;
  #peek: Subscription | undefined;
  readonly #queue: QueueReports;

  constructor(
    readonly connection: Connection,
    readonly samplingSessionId: string,
    readonly clonedSamplerId: number,
  ) {
    this.#queue = new QueueReports(connection);
  }

  /** Emits once, when the request is known to be finished or failed, the size of its result if that is known. */
  wait(requestId: string): Observable<number | undefined> {
    return new Observable((subscriber) => {
      const early = this.#early.get(requestId);
      if (early !== undefined) {
        this.#early.delete(requestId);
        tell(subscriber, early);
        return undefined;
      }
      const sinceMs = this.connection.scheduler.now();
      if (this.#waiters.size === 0) this.#progressMs = sinceMs;
      this.#waiters.set(requestId, { sinceMs, subscriber });
      this.#start();
      return () => {
        // Nobody will fetch it: if it still finishes, the server may forget it at once.
        if (this.#waiters.delete(requestId)) this.#abandoned.add(requestId);
      };
    });
  }

  /** Lets the server forget a result that has been fetched; reported with the next poll. */
  markRetrieved(requestId: string): void {
    this.#retrieved.add(requestId);
    this.#start();
  }

  get #busy(): boolean {
    return this.#waiters.size > 0 || this.#retrieved.size > 0;
  }

  #start(): void {
    if (this.#polling) return;
    // Set before the first poll, which may be answered before its subscribe returns.
    this.#polling = true;
    defer(() => this.#pace().pipe(concatMap(() => this.#poll())))
      .pipe(
        retry({
          delay: (error: TinkerError) => wait((failure) => this.#delayAfter(failure), error, this.connection.scheduler),
        }),
        map(() => this.#busy),
        repeat(),
        takeWhile((busy) => busy),
        ignoreElements(),
        takeUntil(this.connection.closing),
      )
      .subscribe({
        complete: () => (this.#polling = false),
        error: (error: TinkerError) => {
          this.#polling = false;
          this.#fail(error);
        },
      });
  }

  /** A server that does not hold the poll must not be asked in a tight loop. */
  #pace(): Observable<unknown> {
    const waitMs = this.#notBeforeMs - this.connection.scheduler.now();
    return waitMs > 0 ? timer(waitMs, this.connection.scheduler) : of(0);
  }

  #poll(): Observable<void> {
    const askedMs = this.connection.scheduler.now();
    const reported = [...this.#retrieved].sort();
    const json = FuturesRetrieveRequest.encode({
      target: {
        type: 'sampling_session',
        samplingSessionId: this.samplingSessionId,
        clonedSamplerId: this.clonedSamplerId,
      },
      prevCursor: this.#cursor,
      retrievedRequestIds: reported,
    });
    return this.connection
      .attempt(
        { path: 'retrieve_futures', lane: 'sessionPolls', json, timeoutMs: this.connection.pollTimeoutMs },
        this.connection.uuid(),
      )
      .pipe(
        decodeJson(FuturesRetrieveResponse, 'retrieve_futures'),
        map(({ completions, cursor }) => {
          this.#badRequests = 0;
          this.#cursor = cursor;
          for (const id of reported) this.#retrieved.delete(id);
          for (const completion of completions) this.#finish(completion);
          if (completions.length > 0) this.#progressMs = this.connection.scheduler.now();
          else this.#notBeforeMs = askedMs + SHORTEST_POLL_MS;
          this.#peekWhenQuiet();
        }),
      );
  }

  #finish({ requestId, responsePayloadUncompressedSize = 0 }: FutureCompletion): void {
    const waiter = this.#waiters.get(requestId);
    if (this.#abandoned.delete(requestId)) this.#retrieved.add(requestId);
    else if (waiter === undefined) this.#early.set(requestId, responsePayloadUncompressedSize);
    else {
      this.#waiters.delete(requestId);
      tell(waiter.subscriber, responsePayloadUncompressedSize);
    }
  }

  #delayAfter(error: TinkerError): number | undefined {
    const { billing, events } = this.connection;
    const meaning = classifyFailure(error, 'poll');
    if (meaning === 'billing') return billing.mayWait(error.message) ? BILLING_RETRY_MS : undefined;
    if (meaning === 'proxy' || meaning === 'doubtful') this.#badRequests++;
    else if (meaning !== 'again' && meaning !== 'backoff' && meaning !== 'reset') return undefined;
    if (this.#badRequests > MOST_BAD_REQUESTS) return undefined;
    const path = 'retrieve_futures';
    const target = this.samplingSessionId;
    events.emit({ type: 'request-retry', path, attempt: 1, delayMs: RETRY_MS, error, requestType: 'Sample', target });
    return RETRY_MS;
  }

  #fail(error: TinkerError): void {
    const waiters = [...this.#waiters.values()];
    this.#waiters.clear();
    for (const { subscriber } of waiters) subscriber.error(error);
  }

  /** Asks for the oldest waiting sample alone, once nothing has finished for half a minute. */
  #peekWhenQuiet(): void {
    const oldest = this.#waiters.entries().next().value;
    if (oldest === undefined || (this.#peek !== undefined && !this.#peek.closed)) return;
    if (this.connection.scheduler.now() - this.#progressMs < QUIET_MS) return;
    const [requestId, { sinceMs }] = oldest;
    this.#peek = this.connection
      .attempt(
        {
          path: 'retrieve_future',
          lane: 'polls',
          json: { request_id: requestId, allow_metadata_only: true },
          headers: { accept: 'application/x-protobuf', 'x-tinker-request-type': 'Sample' },
          timeoutMs: this.connection.pollTimeoutMs,
        },
        this.connection.uuid(),
      )
      .pipe(map(parseBody), takeUntil(this.connection.closing))
      .subscribe({
        next: (body) => this.#sayQueue(requestId, sinceMs, body),
        // A 408 is the usual "not yet"; any other failure reaches the session poll, too.
        error: (error: unknown) => {
          if (error instanceof APIStatusError && error.status === 408) this.#sayQueue(requestId, sinceMs, error.body);
        },
      });
  }

  #sayQueue(requestId: string, sinceMs: number, body: unknown): void {
    this.#progressMs = this.connection.scheduler.now();
    this.#queue.read(body, { requestType: 'Sample', target: this.samplingSessionId }, requestId, sinceMs);
  }
}
