import * as t from 'io-ts';
import { NonNegative, NonNegativeInteger } from './number.js';
import { optional, request, response, withDefault } from './record.js';

/** The result handle that a server returns for work it has accepted. */
export const UntypedFuture = response('UntypedFuture', {
  request_id: t.string,
  model_id: optional(t.string),
  sample_sequence_ids: optional(t.array(t.string)),
});
export type UntypedFuture = t.TypeOf<typeof UntypedFuture>;

export const FutureRetrieveRequest = request('FutureRetrieveRequest', {
  request_id: t.string,
  allow_metadata_only: withDefault(t.boolean, false),
});

export const FuturesRetrieveRequest = request('FuturesRetrieveRequest', {
  target: request('SamplingSessionTarget', {
    type: withDefault(t.literal('sampling_session'), 'sampling_session'),
    sampling_session_id: t.string,
    cloned_sampler_id: withDefault(NonNegativeInteger, 0),
  }),
  prev_cursor: withDefault(NonNegativeInteger, 0),
  timeout: optional(NonNegative),
  retrieved_request_ids: withDefault(t.array(t.string), []),
});
export const FutureCompletion = response('FutureCompletion', {
  state: t.union([t.literal('finished'), t.literal('failed')]),
  request_id: t.string,
  response_payload_uncompressed_size: optional(NonNegativeInteger),
});
export type FutureCompletion = t.TypeOf<typeof FutureCompletion>;
export const FuturesRetrieveResponse = response('FuturesRetrieveResponse', {
  completions: t.array(FutureCompletion),
  cursor: NonNegativeInteger,
});

export const CancelFutureRequest = request('CancelFutureRequest', { request_id: t.string });

/** Why work is not running yet, as the server says it. */
export type QueueState = 'active' | 'paused_capacity' | 'paused_rate_limit' | 'unknown';
/** The body of a 408, which is a try_again in other clothes. */
export const QueueReport = response('QueueReport', {
  queue_state: optional(t.string),
  queue_state_reason: optional(t.string),
});
const QUEUE_STATES: readonly string[] = ['active', 'paused_capacity', 'paused_rate_limit'];
export const toQueueState = (state: string | undefined): QueueState =>
  state !== undefined && QUEUE_STATES.includes(state) ? (state as QueueState) : 'unknown';

export const CompleteMetadata = response('CompleteMetadata', {
  status: t.literal('complete_metadata'),
  response_payload_size: withDefault(NonNegativeInteger, 0),
});

/** Whose fault a failure was, as the service reports it. */
export type RequestErrorCategory = 'unknown' | 'server' | 'user';
/** Case does not matter; what is not known is unknown. */
export const toErrorCategory = (category: unknown): RequestErrorCategory => {
  const lower = typeof category === 'string' ? category.toLowerCase() : '';
  return lower === 'server' || lower === 'user' ? lower : 'unknown';
};

/** What a result says where the work failed. */
export interface RequestFailed {
  readonly error: unknown;
  readonly category?: unknown;
}
/** Whatever stands under `error` is a failure, in any shape; null is how servers write that there is none. */
export const isRequestFailed = (body: unknown): body is RequestFailed =>
  typeof body === 'object' && body !== null && ((body as RequestFailed).error ?? null) !== null;
