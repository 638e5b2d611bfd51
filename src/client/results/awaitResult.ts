import { concatMap, defer, finalize, tap, type Observable } from 'rxjs';
import type { TransportResponse } from '../../transport/Transport.js';
import { isRequestFailed, UntypedFuture } from '../../wire/futures.js';
import { parseBody, readJson } from '../connection/answer.js';
import type { Connection } from '../connection/Connection.js';
import type { OpenSession } from '../session/Session.js';
import type { OnAccepted } from '../TinkerFuture.js';
import { requestFailure } from './requestFailure.js';
import { retrieve } from './retrieve.js';
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
 * @throws RequestFailedError where the answer tells of a failure instead, APIResponseValidationError for any other.
 */
export function accept(
  connection: Connection,
  path: string,
  sent: Sent,
  answer: TransportResponse,
  onAccepted: OnAccepted,
): Accepted {
  const promise = readPromise(connection, path, answer);
  const { requestId } = promise;
  onAccepted(requestId);
  const { requestType, target, seqId, bytes, startedMs } = sent;
  const { events, scheduler } = connection;
  if (events.all.observed) events.emit({ type: 'request-sent', requestType, requestId, target, seqId, bytes });
  return { ...sent, requestId, roundtripMs: scheduler.now() - startedMs, promise };
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
 * training work keeps running, and an event says which.
 */
export function awaitResult<A>(
  session: OpenSession,
  work: Accepted,
  format: ResultFormat<A>,
  poller?: SessionPoller,
): Observable<A> {
  return defer(() => {
    const { connection, responseBytes } = session;
    const { events, scheduler } = connection;
    const { requestType, requestId, target, startedMs } = work;
    let settled = false;
    const settle = (): void => {
      settled = true;
      poller?.markRetrieved(requestId);
    };
    const result =
      poller === undefined
        ? retrieve(connection, responseBytes, work, format)
        : poller
            .wait(requestId)
            .pipe(concatMap((knownBytes) => retrieve(connection, responseBytes, work, format, knownBytes)));
    return result.pipe(
      tap({
        next: () => {
          settle();
          if (!events.all.observed) return;
          const elapsedMs = scheduler.now() - startedMs;
          events.emit({ type: 'request-finished', requestType, requestId, target, elapsedMs });
        },
        error: settle,
      }),
      finalize(() => {
        if (settled) return;
        const cancelled = requestType === 'Sample' && session.cancelSample(requestId);
        events.emit({ type: 'request-abandoned', requestType, requestId, target, cancelled });
      }),
    );
  });
}
