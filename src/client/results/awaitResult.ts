import { Observable, concatMap } from 'rxjs';
import type { TransportResponse } from '../../transport/Transport.js';
import { UntypedFuture } from '../../wire/futures.js';
import type { RequestType } from '../events.js';
import { readJson } from '../connection/readJson.js';
import { retrieve, type ResultFormat } from './retrieve.js';
import type { OpenSession } from '../session/Session.js';
import type { SessionPoller } from './SessionPoller.js';
import type { FutureProgress } from '../TinkerFuture.js';

/** A request on its way: what it is, for whom, and when it left. */
export interface Submission {
  readonly requestType: RequestType;
  readonly target: string;
  readonly seqId: number | undefined;
  readonly bytes: number;
  readonly startedMs: number;
}

/** A request that the service has accepted. */
export interface Accepted {
  readonly submission: Submission;
  readonly promise: UntypedFuture;
  readonly roundtripMs: number;
}

/** Reads the promise in the answer to a submission and says that it was accepted. */
export function accept(
  { connection }: OpenSession,
  submission: Submission,
  answer: TransportResponse,
  progress: FutureProgress | undefined,
): Accepted {
  const promise = readJson(answer, UntypedFuture, submission.requestType);
  const { requestType, target, seqId, bytes, startedMs } = submission;
  progress?.accepted(promise.requestId);
  connection.events.emit({ type: 'request-sent', requestType, requestId: promise.requestId, target, seqId, bytes });
  return { submission, promise, roundtripMs: connection.scheduler.now() - startedMs };
}

/**
 * Waits for the result of an accepted request. Unsubscribing abandons it: a sample is cancelled on the server where
 * that is wanted, training work runs on, and either way an event says so. `finish` completes the result with what only
 * the promise knows.
 */
export function awaitResult<A>(
  session: OpenSession,
  { submission, promise, roundtripMs }: Accepted,
  format: ResultFormat<A>,
  poller?: SessionPoller,
  finish?: (result: A, promise: UntypedFuture) => A,
): Observable<A> {
  const { connection } = session;
  const { requestType, target, startedMs } = submission;
  const { requestId } = promise;
  const work = { requestId, requestType, target, roundtripMs };
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
            subscriber.next(finish === undefined ? value : finish(value, promise));
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
