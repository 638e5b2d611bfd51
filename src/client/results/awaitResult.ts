import { Observable, Subscriber } from 'rxjs';
import type { TransportResponse } from '../../transport/Transport.js';
import { isRequestFailed, UntypedFuture } from '../../wire/futures.js';
import type { Connection } from '../connection/Connection.js';
import { parseBody } from '../connection/failure.js';
import { onAnswer } from '../connection/onAnswer.js';
import { readJson } from '../connection/readJson.js';
import type { OpenSession } from '../session/Session.js';
import type { FutureProgress } from '../TinkerFuture.js';
import { requestFailure } from './requestFailure.js';
import { retrieve } from './retrieve.js';
import type { SessionPoller } from './SessionPoller.js';
import type { Accepted, ResultFormat, Sent, Work } from './work.js';

/** Sends work that belongs to the session and to no model's turn, and waits for its result. */
export function submitWork<A>(session: OpenSession, work: Work<A>, progress: FutureProgress): Observable<A> {
  const { connection } = session;
  const { requestType, path, target, json, format } = work;
  const sent = { requestType, target, seqId: undefined, bytes: 0, startedMs: connection.scheduler.now() };
  return onAnswer(connection.send({ path, lane: 'training', json }, { requestType, target }), (answer) =>
    awaitResult(session, accept(connection, path, sent, answer, progress), format),
  );
}

/**
 * Reads the promise in the answer to a submission and emits that it was accepted.
 *
 * @throws RequestFailedError where the answer tells of a failure instead, APIResponseValidationError for any other.
 */
export function accept(
  connection: Connection,
  path: string,
  { requestType, target, seqId, bytes, startedMs }: Sent,
  answer: TransportResponse,
  progress: FutureProgress | undefined,
): Accepted {
  const promise = readPromise(connection, path, answer);
  const { requestId } = promise;
  progress?.accepted(requestId);
  const { events } = connection;
  if (events.observed) events.emit({ type: 'request-sent', requestType, requestId, target, seqId, bytes });
  const roundtripMs = connection.scheduler.now() - startedMs;
  return { requestType, target, seqId, bytes, startedMs, requestId, roundtripMs, promise };
}

function readPromise(connection: Connection, path: string, answer: TransportResponse): UntypedFuture {
  try {
    return readJson(answer, UntypedFuture, path);
  } catch (error) {
    const body = parseBody(answer);
    throw isRequestFailed(body) ? requestFailure(body, connection.secrets) : error;
  }
}

/**
 * Waits for the result of accepted work. Unsubscribing abandons it: a sample is cancelled on the server where it can be,
 * training work keeps running, and an event says which. `finish` completes the result with what only the promise
 * knows.
 */
export function awaitResult<A>(
  session: OpenSession,
  work: Accepted,
  format: ResultFormat<A>,
  poller?: SessionPoller,
  finish?: (result: A, promise: UntypedFuture) => A,
): Observable<A> {
  const { connection } = session;
  const result =
    poller === undefined
      ? retrieve(connection, session.responseBytes, work, format)
      : onAnswer(poller.wait(work.requestId), (known) =>
          retrieve(connection, session.responseBytes, work, format, known),
        );
  return new Observable((subscriber) => {
    result.subscribe(new Waiting(subscriber, session, work, poller, finish));
  });
}

/** Passes the result on and tells of it; unsubscribed without one, it gives the work up. */
class Waiting<A> extends Subscriber<A> {
  private settled = false;

  constructor(
    private readonly to: Subscriber<A>,
    private readonly session: OpenSession,
    private readonly work: Accepted,
    private readonly poller: SessionPoller | undefined,
    private readonly finish: ((result: A, promise: UntypedFuture) => A) | undefined,
  ) {
    super();
    to.add(this);
  }

  protected override _next(value: A): void {
    this.settle();
    this.tellFinished();
    let result: A;
    try {
      result = this.finish === undefined ? value : this.finish(value, this.work.promise);
    } catch (error) {
      return this.to.error(error);
    }
    this.to.next(result);
  }

  protected override _error(error: unknown): void {
    this.settle();
    this.unsubscribe();
    this.to.error(error);
  }

  protected override _complete(): void {
    this.unsubscribe();
    this.to.complete();
  }

  override unsubscribe(): void {
    if (this.closed) return;
    super.unsubscribe();
    if (this.settled) return;
    const { requestType, requestId, target } = this.work;
    const cancelled = requestType === 'Sample' && this.session.cancelSample(requestId);
    this.session.connection.events.emit({ type: 'request-abandoned', requestType, requestId, target, cancelled });
  }

  private settle(): void {
    this.settled = true;
    this.poller?.markRetrieved(this.work.requestId);
  }

  private tellFinished(): void {
    const { events, scheduler } = this.session.connection;
    if (!events.observed) return;
    const { requestType, requestId, target, startedMs } = this.work;
    const elapsedMs = scheduler.now() - startedMs;
    events.emit({ type: 'request-finished', requestType, requestId, target, elapsedMs });
  }
}
