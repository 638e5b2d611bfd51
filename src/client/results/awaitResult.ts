import { Observable, concatMap } from 'rxjs';
import type { TransportResponse } from '../../transport/Transport.js';
import { UntypedFuture } from '../../wire/futures.js';
import type { Connection } from '../connection/Connection.js';
import { onAnswer } from '../connection/onAnswer.js';
import { readJson } from '../connection/readJson.js';
import type { WorkKind } from '../events.js';
import type { OpenSession } from '../session/Session.js';
import type { FutureProgress } from '../TinkerFuture.js';
import { retrieve, type ResultFormat } from './retrieve.js';
import type { SessionPoller } from './SessionPoller.js';

/** Work for the service: a request that it accepts first, and a result that is polled for. */
export interface Work<A> extends WorkKind {
  readonly path: string;
  readonly json: object;
  readonly format: ResultFormat<A>;
}

/** Work on its way to the service. */
interface Sent extends WorkKind {
  readonly seqId: number | undefined;
  readonly bytes: number;
  readonly startedMs: number;
}

/** Work that the service has accepted. */
export interface Accepted extends Sent {
  readonly requestId: string;
  /** How long the submission took, which the service likes to know. */
  readonly roundtripMs: number;
  /** What the service said when it accepted the work. */
  readonly promise: UntypedFuture;
}

/** Sends work that belongs to the session and to no model's turn, and waits for its result. */
export function submitWork<A>(session: OpenSession, work: Work<A>, progress: FutureProgress): Observable<A> {
  const { connection } = session;
  const { requestType, path, target, json, format } = work;
  const sent = { requestType, target, seqId: undefined, bytes: 0, startedMs: connection.scheduler.now() };
  return onAnswer(connection.send({ path, lane: 'training', json }, { requestType, target }), (answer) =>
    awaitResult(session, accept(connection, sent, answer, progress), format),
  );
}

/** Reads the promise in the answer to a submission and emits that it was accepted. */
export function accept(
  connection: Connection,
  { requestType, target, seqId, bytes, startedMs }: Sent,
  answer: TransportResponse,
  progress: FutureProgress | undefined,
): Accepted {
  const promise = readJson(answer, UntypedFuture, requestType);
  const { requestId } = promise;
  progress?.accepted(requestId);
  connection.events.emit({ type: 'request-sent', requestType, requestId, target, seqId, bytes });
  const roundtripMs = connection.scheduler.now() - startedMs;
  return { requestType, target, seqId, bytes, startedMs, requestId, roundtripMs, promise };
}

/**
 * Waits for the result of accepted work. Unsubscribing abandons it: a sample is cancelled on the server where it can be,
 * training work runs on, and either way an event says so. `finish` completes the result with what only the promise
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
  const { requestType, target, requestId, startedMs } = work;
  const result =
    poller === undefined
      ? retrieve(connection, session.responseBytes, work, format)
      : poller
          .wait(requestId)
          .pipe(concatMap((known) => retrieve(connection, session.responseBytes, work, format, known)));
  return new Observable((subscriber) => {
    let settled = false;
    subscriber.add(
      result.subscribe({
        next: (value) => {
          settled = true;
          poller?.markRetrieved(requestId);
          connection.events.emit({
            type: 'request-finished',
            requestType,
            requestId,
            target,
            elapsedMs: connection.scheduler.now() - startedMs,
          });
          try {
            subscriber.next(finish === undefined ? value : finish(value, work.promise));
          } catch (error) {
            subscriber.error(error);
          }
        },
        error: (error: unknown) => {
          settled = true;
          poller?.markRetrieved(requestId);
          subscriber.error(error);
        },
        complete: () => subscriber.complete(),
      }),
    );
    subscriber.add(() => {
      if (settled) return;
      const cancelled = requestType === 'Sample' && session.cancelSample(requestId);
      connection.events.emit({ type: 'request-abandoned', requestType, requestId, target, cancelled });
    });
  });
}
