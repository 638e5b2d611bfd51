import type { Observable } from 'rxjs';
import type { RequestType } from '../events.js';
import { accept, awaitResult } from './awaitResult.js';
import { onAnswer } from '../connection/onAnswer.js';
import type { ResultFormat } from './retrieve.js';
import type { OpenSession } from '../session/Session.js';
import type { FutureProgress } from '../TinkerFuture.js';

export interface Work<A> {
  readonly requestType: RequestType;
  readonly path: string;
  /** What the work is about, for events. */
  readonly target: string;
  readonly json: object;
  readonly format: ResultFormat<A>;
}

/** Sends work that belongs to the session and to no model's turn, and waits for its result. */
export function submitWork<A>(session: OpenSession, work: Work<A>, progress: FutureProgress): Observable<A> {
  const { connection } = session;
  const { requestType, path, target, json, format } = work;
  const submission = { requestType, target, seqId: undefined, bytes: 0, startedMs: connection.scheduler.now() };
  return onAnswer(connection.send({ path, lane: 'training', json }, { requestType, target }), (answer) =>
    awaitResult(session, accept(session, submission, answer, progress), format),
  );
}
