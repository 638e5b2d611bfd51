import { CancelFutureRequest, FutureRetrieveRequest, FuturesRetrieveRequest } from '../../wire/index.js';
import { HttpError } from '../http/httpError.js';
import { bytes, json, noContent, type Reply } from '../http/reply.js';
import type { RequestContext } from '../http/requestContext.js';
import { post, type Route } from '../http/router.js';
import type { LocalFuture } from '../queue/localFuture.js';
import type { LocalService } from '../service/localService.js';
import { findSampler } from './samplers.js';

/** Waiting for accepted work: one promise at a time, or all of one sampler. */
export const futureRoutes = (service: LocalService): Route[] => [
  post('retrieve_future', (context) => retrieveFuture(service, context)),
  post('retrieve_futures', (context) => retrieveFutures(service, context)),
  post('cancel_future', (context) => {
    const { requestId } = context.decode(CancelFutureRequest);
    const future = findFuture(service, requestId);
    if (future.owner.requestType !== 'Sample') throw new HttpError(400, 'only samples can be cancelled');
    service.cancels.get(requestId)?.abort();
    return noContent();
  }),
];

function findFuture(service: LocalService, requestId: string): LocalFuture {
  const future = service.futures.find(requestId);
  if (future === undefined) throw new HttpError(404, `there is no request ${requestId.slice(0, 100)}`);
  if (future === 'gone') throw new HttpError(410, `the result of request ${requestId} is gone`);
  return future;
}

async function retrieveFuture(service: LocalService, context: RequestContext): Promise<Reply> {
  const { requestId, allowMetadataOnly } = context.decode(FutureRetrieveRequest);
  const future = findFuture(service, requestId);
  await settledOrNews(service, future, context.signal);
  const { state } = future;
  if (state.type === 'pending') return tryAgain(service, future);
  if (state.type === 'gone') throw new HttpError(410, `the result of request ${requestId} is gone`);
  if (state.type === 'failed') return service.dialect.failed(state.failure);
  const { content, contentType } = service.dialect.encode(future, state.result, context.acceptsProtobuf);
  if (allowMetadataOnly && content.length >= service.options.metadataOnlyBytes) {
    return json({ status: 'complete_metadata', response_payload_size: content.length });
  }
  return bytes(content, contentType);
}

/** Waits until the future settles, the client leaves, the time is up, or the queue's state is news to this client. */
async function settledOrNews(service: LocalService, future: LocalFuture, signal: AbortSignal): Promise<void> {
  const deadline = service.steadyNow() + service.options.pollHoldMs;
  for (;;) {
    if (!future.pending || signal.aborted) return;
    if (service.controls.queueState.state !== future.reportedState) return;
    const remaining = deadline - service.steadyNow();
    if (remaining <= 0) return;
    await future.changes.next(remaining, signal);
  }
}

function tryAgain(service: LocalService, future: LocalFuture): Reply {
  const { state, reason = future.waitingFor } = service.controls.queueState;
  future.reportedState = state;
  return service.dialect.tryAgain(future, { state: future.throttled ? 'paused_rate_limit' : state, reason });
}

async function retrieveFutures(service: LocalService, context: RequestContext): Promise<Reply> {
  const { target, prevCursor, timeout, retrievedRequestIds } = context.decode(FuturesRetrieveRequest);
  const session = findSampler(service, target.samplingSessionId);
  if (session.sessionId !== undefined) service.sessions.touch(session.sessionId);
  for (const requestId of retrievedRequestIds) service.futures.forget(requestId);
  const log = session.logOf(target.clonedSamplerId);
  const holdMs = Math.min(service.options.sessionPollHoldMs, timeout === undefined ? Infinity : timeout * 1000);
  if (log.after(prevCursor).length === 0) await log.changes.next(holdMs, context.signal);
  return json({
    completions: log.after(prevCursor).map(({ state, requestId, sizeBytes }) => ({
      state,
      request_id: requestId,
      response_payload_uncompressed_size: sizeBytes,
    })),
    cursor: log.cursor,
  });
}
