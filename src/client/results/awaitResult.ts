import { isLeft } from 'fp-ts/lib/Either.js';
import { concatMap, defer, finalize, map, of, retry, tap, timer, type Observable } from 'rxjs';
import type { TransportResponse } from '../../transport/Transport.js';
import { CompleteMetadata, isRequestFailed, UntypedFuture, type RequestFailed } from '../../wire/futures.js';
import { describeErrors } from '../../wire/record.js';
import { parseBody, readJson } from '../connection/answer.js';
import type { Connection } from '../connection/Connection.js';
import { failureDelays, wait, type DelayAfter } from '../connection/retryFailures.js';
import {
  APIResponseValidationError,
  APIStatusError,
  APITimeoutError,
  RequestFailedError,
  type TinkerError,
} from '../errors.js';
import type { OpenSession } from '../session/Session.js';
import type { OnAccepted } from '../TinkerFuture.js';
import { QueueReports } from './queueReports.js';
import { requestFailure } from './requestFailure.js';
import type { SessionPoller } from './SessionPoller.js';
import type { Accepted, ResultFormat, Sent, Work } from './work.js';

/** Sends work that belongs to the session and to no model's turn, and waits for its result. */
export function submitWork<A>(session: OpenSession, work: Work<A>, onAccepted: OnAccepted): Observable<A> {
  const { connection } = session;
  const { requestType, path, target, json, format } = work;
  const sent = { requestType, target, seqId: undefined, bytes: 0, startedMs: connection.scheduler.now() };
  return connection
    .send({ path, lane: 'training', json }, { requestType, target })
    .pipe(concatMap((answer) => awaitResult(session, accept(connection, path, sent, answer, onAccepted), format)));
}

/**
 * Reads the promise in the answer to a submission and emits that it was accepted.
 *
 * @throws RequestFailedError if the answer reports a failure instead, APIResponseValidationError for any other.
 */
export function accept(
  connection: Connection,
  path: string,
  sent: Sent,
  answer: TransportResponse,
  onAccepted: OnAccepted,
): Accepted {
  let promise: UntypedFuture;
  try {
    promise = readJson(answer, UntypedFuture, path);
  } catch (error) {
    const body = parseBody(answer);
    throw isRequestFailed(body) ? requestFailure(body, connection.secrets) : error;
  }
  const { requestId } = promise;
  onAccepted(requestId);
  const { requestType, target, seqId, bytes, startedMs } = sent;
  const { events, scheduler } = connection;
  if (events.all.observed) events.emit({ type: 'request-sent', requestType, requestId, target, seqId, bytes });
  const roundtripMs = scheduler.now() - startedMs;
  // Field by field: a spread takes V8 ten times as long, and there is one for each sample.
  return { requestType, target, seqId, bytes, startedMs, requestId, roundtripMs, promise };
}

/** A server that answers "not yet" without holding the poll must not be asked in a tight loop. */
export const SHORTEST_POLL_MS = 100;
/** What the service answers when a poll has waited long enough. Thousands may wait, so this is no error with a stack. */
const NOT_YET_STATUS = 408;
/** A result may be large and the line slow: after two timeouts in a row each poll has twice as long, up to this many times. */
const MOST_PATIENCE = 4;
/** Thrown for an answer without a result, so that `retry` asks again. One for all: a stack for each answer would be slow. */
const NOT_YET = new Error('not yet');

/**
 * Polls for the result of accepted work until there is one.
 *
 * ```
 * polls     p----p----p-|          "not yet", "not yet", the result
 * result    -------------(r|)
 * ```
 * "Not yet" is asked again at once and reported as an event with the queue's state; temporary failures are retried
 * without a limit, since the work continues meanwhile. A large result is announced by its size first; its bytes are
 * taken from the budget of responses in flight before it is fetched. With a `poller`, one poll serves many.
 * Errors: RequestFailedError when the work failed, GoneError when the promise is gone, others as the service answers.
 * Unsubscribing abandons the work: a sample is cancelled on the server if it can be, training work keeps running, and an
 * event says which.
 */
export function awaitResult<A>(
  session: OpenSession,
  work: Accepted,
  format: ResultFormat<A>,
  poller?: SessionPoller,
): Observable<A> {
  return defer(() => {
    const poll = new Poll(session, work, format, poller);
    const result = defer(() => poll.ask()).pipe(
      map((response) => poll.read(response)),
      retry({ delay: (thrown) => poll.after(thrown) }),
    );
    const polled =
      poller === undefined
        ? result
        : poller.wait(work.requestId).pipe(
            tap({ next: (bytes) => (poll.knownBytes = bytes), error: () => poll.settle() }),
            concatMap(() => result),
          );
    return polled.pipe(finalize(() => poll.isSettled || poll.abandon()));
  });
}

/** The polls of one wait. */
class Poll<A> {
  /** The size of the result, once it is known. */
  knownBytes: number | undefined;
  /** Whether there is a result or a failure. */
  isSettled = false;
  readonly #startedMs: number;
  #iteration = 0;
  #askedMs = 0;
  #notBeforeMs = 0;
  #timeouts = 0;
  #delayAfter: DelayAfter | undefined;
  #queue: QueueReports | undefined;

  constructor(
    readonly session: OpenSession,
    readonly work: Accepted,
    readonly format: ResultFormat<A>,
    readonly poller: SessionPoller | undefined,
  ) {
    this.#startedMs = session.connection.scheduler.now();
  }

  /** One poll; for a large result, once there is room for it. */
  ask(): Observable<TransportResponse> {
    const { session, work, format, knownBytes } = this;
    const { connection } = session;
    const headers: Record<string, string> = {
      'x-tinker-request-iteration': String(this.#iteration),
      'x-tinker-request-type': work.requestType,
    };
    if (this.#iteration === 0) headers['x-tinker-create-promise-roundtrip-time'] = String(work.roundtripMs / 1000);
    if (format.protobuf !== undefined) headers['accept'] = 'application/x-protobuf';
    this.#iteration++;
    this.#askedMs = connection.scheduler.now();
    const call = {
      path: 'retrieve_future',
      lane: 'polls',
      json: { request_id: work.requestId, allow_metadata_only: knownBytes === undefined },
      headers,
      timeoutMs: connection.pollTimeoutMs * Math.min(2 ** Math.max(0, this.#timeouts - 1), MOST_PATIENCE),
      answerBytes: knownBytes ?? 0,
      alsoAnswer: NOT_YET_STATUS,
    } as const;
    const answer = connection.attempt(call, connection.uuid());
    return knownBytes === undefined ? answer : session.responseBytes.run(knownBytes, answer);
  }

  /** The result in an answer. @throws NOT_YET, or the failure that the answer reports. */
  read(response: TransportResponse): A {
    this.#timeouts = 0;
    const { requestId } = this.work;
    const { protobuf, json } = this.format;
    const isProtobuf = /x-protobuf/.test(response.headers['content-type'] ?? '');
    if (protobuf !== undefined && isProtobuf && response.status !== NOT_YET_STATUS) {
      try {
        return this.#finished(protobuf(response.body));
      } catch (cause) {
        const message = `the result of ${requestId} is not a valid protobuf message`;
        throw new APIResponseValidationError(message, { requestId, cause });
      }
    }
    const body = parseBody(response);
    const said = (typeof body === 'object' && body !== null ? body : {}) as Partial<Record<string, unknown>>;
    if (response.status === NOT_YET_STATUS || said['type'] === 'try_again') {
      this.#queue ??= new QueueReports(this.session.connection);
      this.#queue.read(body, this.work, requestId, this.#startedMs);
      this.#notBeforeMs = this.#askedMs + SHORTEST_POLL_MS;
      throw NOT_YET;
    }
    const metadata = said['status'] === 'complete_metadata' ? CompleteMetadata.decode(body) : undefined;
    if (metadata !== undefined && !isLeft(metadata)) {
      if (this.knownBytes !== undefined) {
        const message = `the service announced the result of ${requestId} twice and did not send it`;
        throw new APIResponseValidationError(message, { requestId });
      }
      this.knownBytes = metadata.right.responsePayloadSize;
      this.#notBeforeMs = 0;
      throw NOT_YET;
    }
    if ((said['error'] ?? null) !== null)
      throw requestFailure(said as unknown as RequestFailed, this.session.connection.secrets, requestId);
    const decoded = json.decode(body);
    if (isLeft(decoded))
      throw new APIResponseValidationError(`the result of ${requestId}: ${describeErrors(decoded.left)}`, {
        requestId,
      });
    return this.#finished(decoded.right);
  }

  /** When to ask again. Usually the service held the poll, and the next one goes out at once. @throws a final failure */
  after(thrown: unknown): Observable<unknown> {
    const { scheduler } = this.session.connection;
    if (thrown === NOT_YET) {
      this.#delayAfter = undefined;
      const leftMs = this.#notBeforeMs - scheduler.now();
      return leftMs > 0 ? timer(leftMs, scheduler) : of(0);
    }
    this.#timeouts = thrown instanceof APITimeoutError ? this.#timeouts + 1 : 0;
    const { requestId, requestType, target } = this.work;
    const retrying = { phase: 'poll', path: 'retrieve_future', about: { requestId, requestType, target } } as const;
    this.#delayAfter ??= failureDelays(this.session.connection, retrying, this.#startedMs);
    try {
      return wait(this.#delayAfter, thrown as TinkerError, scheduler);
    } catch (error) {
      this.settle();
      throw withRequestId(error, requestId);
    }
  }

  #finished(result: A): A {
    this.settle();
    const { requestType, requestId, target, startedMs } = this.work;
    const { events, scheduler } = this.session.connection;
    if (events.all.observed) {
      const elapsedMs = scheduler.now() - startedMs;
      events.emit({ type: 'request-finished', requestType, requestId, target, elapsedMs });
    }
    return result;
  }

  /** There is a result or a failure; the server may forget it. */
  settle(): void {
    this.isSettled = true;
    this.poller?.markRetrieved(this.work.requestId);
  }

  abandon(): void {
    const { requestType, requestId, target } = this.work;
    const cancelled = requestType === 'Sample' && this.session.cancelSample(requestId);
    this.session.connection.events.emit({ type: 'request-abandoned', requestType, requestId, target, cancelled });
  }
}

/** Some servers answer failed work with a 400 and its reason; either way the error names the request. */
function withRequestId(error: unknown, requestId: string): unknown {
  if (!(error instanceof APIStatusError)) return error;
  if (error.status !== 400 || error.body === '') return Object.assign(error, { requestId });
  return new RequestFailedError(error.message, { category: 'unknown', requestId, cause: error });
}
