import { isLeft } from 'fp-ts/lib/Either.js';
import { catchError, concatMap, retry, throwError, timer, type Observable } from 'rxjs';
import type { TransportResponse } from '../../transport/Transport.js';
import { CompleteMetadata, isRequestFailed } from '../../wire/futures.js';
import { describeErrors } from '../../wire/record.js';
import { BILLING_RETRY_MS } from '../connection/Billing.js';
import type { Budget } from '../connection/Budget.js';
import type { Connection } from '../connection/Connection.js';
import { APIResponseValidationError, APIStatusError, RequestFailedError } from '../errors.js';
import type { Accepted, ResultFormat } from './work.js';
import { QueueReports } from './queueReports.js';
import { failedOnce } from '../connection/failedOnce.js';
import { meaningOf, parseBody } from '../connection/failure.js';
import { onAnswer } from '../connection/onAnswer.js';
import { backoffMs, delayFor } from '../connection/resend.js';
import { requestFailure } from './requestFailure.js';

/** A 400 to a poll counts only when it repeats: some proxies inject one. */
export const MOST_BAD_REQUESTS = 3;
const SERVER_ERRORS_AT_ONCE = 2;
/** A server that answers "not yet" without holding the poll must not be asked in a tight loop. */
export const SHORTEST_POLL_MS = 100;
/** What the service answers when a poll has waited long enough. Thousands may wait, so this is no error with a stack. */
const NOT_YET = 408;

/** Not a failure: the result is ready and this large. */
class Announced extends Error {
  constructor(readonly bytes: number) {
    super('announced');
  }
}

/** What a session poll tells: the result is ready, and how large it is. */
export interface KnownOutcome {
  readonly bytes: number;
}

/**
 * Polls for the result of accepted work until there is one.
 *
 * "Not yet" is asked again at once and reported as an event with the queue's state; temporary failures are retried
 * without a limit, since the work continues meanwhile. A large result is announced by its size first; its bytes are
 * taken from the budget of responses in flight before it is fetched. Errors: RequestFailedError when the work failed,
 * GoneError when the promise is gone, others as the service answers.
 */
export function retrieve<A>(
  connection: Connection,
  responses: Budget,
  work: Accepted,
  format: ResultFormat<A>,
  known?: KnownOutcome,
): Observable<A> {
  const poll = new Poll(connection, work, format);
  const fetchHolding = (bytes: number): Observable<A> => responses.hold(bytes, () => poll.next(false));
  return known === undefined ? poll.next(true, fetchHolding) : fetchHolding(known.bytes);
}

/** The state of one wait: how often it has polled, and the failures since the last good answer. */
class Poll<A> {
  readonly #startedMs: number;
  #iteration = 0;
  #backoffs = 0;
  #serverErrors = 0;
  #badRequests = 0;
  #askedMs = 0;
  readonly #queue: QueueReports;

  constructor(
    readonly connection: Connection,
    readonly work: Accepted,
    readonly format: ResultFormat<A>,
  ) {
    this.#startedMs = connection.scheduler.now();
    this.#queue = new QueueReports(connection);
  }

  /** Asks until there is an answer. When the answer is only the size of the result, `onAnnounced` takes over. */
  next(allowMetadataOnly: boolean, onAnnounced?: (bytes: number) => Observable<A>): Observable<A> {
    // Usually the first poll returns the result: the operators for further polls are built only when needed.
    return this.#ask(allowMetadataOnly, (error) => {
      const answer = error instanceof Announced ? throwError(() => error) : this.#askAgain(allowMetadataOnly, error);
      return onAnnounced === undefined
        ? answer
        : answer.pipe(
            catchError((later: unknown) => {
              if (later instanceof Announced) return onAnnounced(later.bytes);
              throw later;
            }),
          );
    });
  }

  #ask(allowMetadataOnly: boolean, recover?: (error: unknown) => Observable<A>): Observable<A> {
    this.#askedMs = this.connection.scheduler.now();
    const headers = this.#headers();
    this.#iteration++;
    const answer = this.connection.attempt(
      {
        path: 'retrieve_future',
        lane: 'polls',
        json: { request_id: this.work.requestId, allow_metadata_only: allowMetadataOnly },
        headers,
        timeoutMs: this.connection.pollTimeoutMs,
        alsoAnswer: NOT_YET,
      },
      this.connection.uuid(),
    );
    return onAnswer(answer, (response) => this.#read(response, allowMetadataOnly, recover), recover);
  }

  #askAgain(allowMetadataOnly: boolean, failure: unknown): Observable<A> {
    return failedOnce(failure, () => this.#ask(allowMetadataOnly)).pipe(
      retry({
        delay: (error: unknown) => {
          if (error instanceof Announced) return throwError(() => error);
          const delayMs = this.#delayAfter(error);
          return delayMs === undefined
            ? throwError(() => this.#named(error))
            : timer(delayMs, this.connection.scheduler);
        },
      }),
    );
  }

  #headers(): Record<string, string> {
    const { requestType, roundtripMs } = this.work;
    const headers: Record<string, string> = {
      'x-tinker-request-iteration': String(this.#iteration),
      'x-tinker-request-type': requestType,
    };
    if (this.#iteration === 0) headers['x-tinker-create-promise-roundtrip-time'] = String(roundtripMs / 1000);
    if (this.format.protobuf !== undefined) headers['accept'] = 'application/x-protobuf';
    return headers;
  }

  /** The result in an answer, or the next poll. @throws Announced, or the failure that the answer tells of. */
  #read(
    response: TransportResponse,
    allowMetadataOnly: boolean,
    recover?: (error: unknown) => Observable<A>,
  ): A | Observable<A> {
    this.#backoffs = this.#serverErrors = this.#badRequests = 0;
    const { requestId } = this.work;
    const { protobuf, json } = this.format;
    const isProtobuf = /x-protobuf/.test(response.headers['content-type'] ?? '');
    if (protobuf !== undefined && isProtobuf && response.status !== NOT_YET) {
      try {
        return protobuf(response.body);
      } catch (error) {
        throw new APIResponseValidationError(`the result of ${requestId} is not a valid protobuf message`, {
          requestId,
          cause: error,
        });
      }
    }
    const body = parseBody(response);
    if (response.status === NOT_YET || isTryAgain(body)) {
      const waitMs = this.#notYet(body);
      // Usually the service held the poll. Then the next one goes out at once, and however many there are, none is nested in another.
      if (waitMs === 0) return this.#ask(allowMetadataOnly, recover);
      return timer(waitMs, this.connection.scheduler).pipe(concatMap(() => this.#ask(allowMetadataOnly, recover)));
    }
    const metadata = CompleteMetadata.decode(body);
    if (!isLeft(metadata)) {
      if (allowMetadataOnly) throw new Announced(metadata.right.responsePayloadSize);
      throw new APIResponseValidationError(
        `the service announced the result of ${requestId} twice and did not send it`,
        { requestId },
      );
    }
    if (isRequestFailed(body)) throw requestFailure(body, this.connection.secrets, requestId);
    const decoded = json.decode(body);
    if (isLeft(decoded))
      throw new APIResponseValidationError(`the result of ${requestId}: ${describeErrors(decoded.left)}`, {
        requestId,
      });
    return decoded.right;
  }

  /** The delay after a failure, or undefined where it is final. */
  #delayAfter(error: unknown): number | undefined {
    const meaning = meaningOf(error, 'poll');
    // Any HTTP answer except a 429 proves that the connection works again.
    if (error instanceof APIStatusError && error.status !== 429) this.#backoffs = 0;
    switch (meaning) {
      case 'again': {
        const failures = this.#serverErrors++;
        return this.#retrying(
          error as APIStatusError,
          failures < SERVER_ERRORS_AT_ONCE ? 0 : backoffMs(failures - SERVER_ERRORS_AT_ONCE),
        );
      }
      case 'backoff':
        return this.#retrying(error as APIStatusError, delayFor(error as APIStatusError, this.#backoffs++));
      case 'proxy':
      case 'doubtful':
        if (++this.#badRequests > MOST_BAD_REQUESTS) return undefined;
        return this.#retrying(error as APIStatusError, 0);
      case 'billing':
        return this.connection.billing.mayWait((error as APIStatusError).message) ? BILLING_RETRY_MS : undefined;
      default:
        return undefined;
    }
  }

  #retrying(error: APIStatusError, delayMs: number): number {
    this.connection.events.emit({
      type: 'request-retry',
      path: 'retrieve_future',
      requestId: this.work.requestId,
      requestType: this.work.requestType,
      target: this.work.target,
      attempt: this.#backoffs + this.#serverErrors + this.#badRequests,
      delayMs,
      error,
    });
    return delayMs;
  }

  /** Reports the queue's state, when it is new or a minute old. Returns how long to wait until the next poll. */
  #notYet(body: unknown): number {
    const nowMs = this.connection.scheduler.now();
    this.#queue.read(body, this.work, this.work.requestId, this.#startedMs);
    return Math.max(0, SHORTEST_POLL_MS - (nowMs - this.#askedMs));
  }

  /** Some servers answer failed work with a 400 and its reason; either way the error names the request. */
  #named(error: unknown): unknown {
    const { requestId } = this.work;
    if (error instanceof APIStatusError && error.status === 400 && error.body !== '') {
      return new RequestFailedError(error.message, { category: 'unknown', requestId, cause: error });
    }
    return error instanceof APIStatusError ? Object.assign(error, { requestId }) : error;
  }
}

const isTryAgain = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && (body as { type?: unknown }).type === 'try_again';
