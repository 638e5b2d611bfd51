import { isLeft } from 'fp-ts/lib/Either.js';
import { EMPTY, catchError, defer, filter, map, of, repeat, timer, type Observable } from 'rxjs';
import type { TransportResponse } from '../../transport/Transport.js';
import { CompleteMetadata, isRequestFailed } from '../../wire/futures.js';
import { describeErrors } from '../../wire/record.js';
import { parseBody } from '../connection/answer.js';
import type { Connection } from '../connection/Connection.js';
import { retryFailures } from '../connection/retryFailures.js';
import type { SharedBudget } from '../connection/SharedBudget.js';
import { APIResponseValidationError, APIStatusError, APITimeoutError, RequestFailedError } from '../errors.js';
import { QueueReports } from './queueReports.js';
import { requestFailure } from './requestFailure.js';
import type { Accepted, ResultFormat } from './work.js';

/** A server that answers "not yet" without holding the poll must not be asked in a tight loop. */
export const SHORTEST_POLL_MS = 100;
/** What the service answers when a poll has waited long enough. Thousands may wait, so this is no error with a stack. */
const NOT_YET_STATUS = 408;
/** A result may be large and the line slow: after two timeouts in a row each poll has twice as long, up to this many times. */
const MOST_PATIENCE = 4;

const NOT_YET = Symbol('not yet');
/** Not a failure: the result is ready and this large. */
class Announced {
  constructor(readonly bytes: number) {}
}

/**
 * Polls for the result of accepted work until there is one.
 *
 * ```
 * polls     p----p----p-|          "not yet", "not yet", the result
 * result    -------------(r|)
 * ```
 * "Not yet" is asked again at once and reported as an event with the queue's state; temporary failures are retried
 * without a limit, since the work continues meanwhile. A large result is announced by its size first; its bytes are
 * taken from the budget of responses in flight before it is fetched. `knownBytes` is the size of one that was announced already.
 * Errors: RequestFailedError when the work failed, GoneError when the promise is gone, others as the service answers.
 */
export function retrieve<A>(
  connection: Connection,
  responses: SharedBudget,
  work: Accepted,
  format: ResultFormat<A>,
  knownBytes?: number,
): Observable<A> {
  const poll = new Poll(connection, work, format);
  const failed = (error: unknown): never => {
    throw withRequestId(error, work.requestId);
  };
  const fetch = (bytes: number): Observable<A> =>
    responses.run(bytes, poll.until(bytes)).pipe(catchError((error: unknown) => failed(error)));
  if (knownBytes !== undefined) return fetch(knownBytes);
  return poll
    .until()
    .pipe(catchError((thrown: unknown) => (thrown instanceof Announced ? fetch(thrown.bytes) : failed(thrown))));
}

/** The polls of one wait. */
class Poll<A> {
  readonly #startedMs: number;
  #iteration = 0;
  #askedMs = 0;
  #timeouts = 0;
  #queue: QueueReports | undefined;
  #isDone = false;

  constructor(
    readonly connection: Connection,
    readonly work: Accepted,
    readonly format: ResultFormat<A>,
  ) {
    this.#startedMs = connection.scheduler.now();
  }

  /** Asks until there is a result. Fails with its size, if that is announced and was not known yet. */
  until(knownBytes?: number): Observable<A> {
    const { requestId, requestType, target } = this.work;
    return defer(() => this.#ask(knownBytes)).pipe(
      map((response) => this.#read(response, knownBytes)),
      retryFailures(this.connection, {
        phase: 'poll',
        path: 'retrieve_future',
        about: { requestId, requestType, target },
        onFailure: (error) => this.#noteTimeout(error),
      }),
      repeat({ delay: () => (this.#isDone ? EMPTY : this.#pause()) }),
      filter((answer): answer is A => answer !== NOT_YET),
    );
  }

  #ask(knownBytes: number | undefined): Observable<TransportResponse> {
    const { connection, work, format } = this;
    const headers: Record<string, string> = {
      'x-tinker-request-iteration': String(this.#iteration),
      'x-tinker-request-type': work.requestType,
    };
    if (this.#iteration === 0) headers['x-tinker-create-promise-roundtrip-time'] = String(work.roundtripMs / 1000);
    if (format.protobuf !== undefined) headers['accept'] = 'application/x-protobuf';
    this.#iteration++;
    this.#askedMs = connection.scheduler.now();
    return connection.attempt(
      {
        path: 'retrieve_future',
        lane: 'polls',
        json: { request_id: work.requestId, allow_metadata_only: knownBytes === undefined },
        headers,
        timeoutMs: connection.pollTimeoutMs * Math.min(2 ** Math.max(0, this.#timeouts - 1), MOST_PATIENCE),
        answerBytes: knownBytes ?? 0,
        alsoAnswer: NOT_YET_STATUS,
      },
      connection.uuid(),
    );
  }

  #noteTimeout(error: unknown): void {
    this.#timeouts = error instanceof APITimeoutError ? this.#timeouts + 1 : 0;
  }

  /** The result in an answer, or NOT_YET. @throws Announced, or the failure that the answer tells of. */
  #read(response: TransportResponse, knownBytes: number | undefined): A | typeof NOT_YET {
    this.#timeouts = 0;
    const { requestId } = this.work;
    const { protobuf, json } = this.format;
    const isProtobuf = /x-protobuf/.test(response.headers['content-type'] ?? '');
    if (protobuf !== undefined && isProtobuf && response.status !== NOT_YET_STATUS) {
      this.#isDone = true;
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
    if (response.status === NOT_YET_STATUS || isTryAgain(body)) {
      this.#queue ??= new QueueReports(this.connection);
      this.#queue.read(body, this.work, requestId, this.#startedMs);
      return NOT_YET;
    }
    this.#isDone = true;
    const metadata = CompleteMetadata.decode(body);
    if (!isLeft(metadata)) {
      // oxlint-disable-next-line typescript/only-throw-error -- caught by `retrieve`; a stack for each large result would be slow
      if (knownBytes === undefined) throw new Announced(metadata.right.responsePayloadSize);
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

  /** Usually the service held the poll, and the next one goes out at once. */
  #pause(): Observable<unknown> {
    const { scheduler } = this.connection;
    const leftMs = SHORTEST_POLL_MS - (scheduler.now() - this.#askedMs);
    return leftMs > 0 ? timer(leftMs, scheduler) : of(0);
  }
}

const isTryAgain = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && (body as { type?: unknown }).type === 'try_again';

/** Some servers answer failed work with a 400 and its reason; either way the error names the request. */
function withRequestId(error: unknown, requestId: string): unknown {
  if (!(error instanceof APIStatusError)) return error;
  if (error.status !== 400 || error.body === '') return Object.assign(error, { requestId });
  return new RequestFailedError(error.message, { category: 'unknown', requestId, cause: error });
}
