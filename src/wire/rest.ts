import * as t from 'io-ts';
import { NonNegativeInteger, PageSize, PositiveInteger } from './number.js';
import { optional, request, response, withDefault } from './record.js';
import { FinishStatus, UserMetadata } from './session.js';
import type * as types from './restTypes.js';

/** Times are kept as the server wrote them (ISO 8601, with or without a zone). */
const Timestamp = t.string;

const CheckpointKind = t.union(
  [t.literal('training'), t.literal('sampler'), t.literal('external')],
  "'training' | 'sampler' | 'external'",
);

export const Checkpoint = response('Checkpoint', {
  checkpoint_id: t.string,
  checkpoint_type: CheckpointKind,
  time: Timestamp,
  tinker_path: t.string,
  size_bytes: optional(NonNegativeInteger),
  public: withDefault(t.boolean, false),
  user_metadata: optional(UserMetadata),
  expires_at: optional(Timestamp),
  base_model: optional(t.string),
});
export type Checkpoint = types.Checkpoint;

export const Cursor = response('Cursor', {
  offset: NonNegativeInteger,
  limit: NonNegativeInteger,
  total_count: NonNegativeInteger,
});
export type Cursor = types.Cursor;

export const CheckpointsListResponse = response('CheckpointsListResponse', {
  checkpoints: t.array(Checkpoint),
  cursor: optional(Cursor),
});
export type CheckpointsListResponse = types.CheckpointsListResponse;

export const TrainingRun = response('TrainingRun', {
  training_run_id: t.string,
  base_model: t.string,
  model_owner: t.string,
  is_lora: t.boolean,
  corrupted: withDefault(t.boolean, false),
  lora_rank: optional(NonNegativeInteger),
  last_request_time: Timestamp,
  last_checkpoint: optional(Checkpoint),
  last_sampler_checkpoint: optional(Checkpoint),
  user_metadata: optional(UserMetadata),
});
export type TrainingRun = types.TrainingRun;

export const TrainingRunsResponse = response('TrainingRunsResponse', {
  training_runs: t.array(TrainingRun),
  cursor: Cursor,
});
export type TrainingRunsResponse = types.TrainingRunsResponse;

export const ExternalWeightsUrlsResponse = response('ExternalWeightsUrlsResponse', {
  urls: t.record(t.string, t.string),
  expires: Timestamp,
});
export type ExternalWeightsUrlsResponse = types.ExternalWeightsUrlsResponse;

/** The body that sets or, with null, removes a checkpoint's time to live. */
export const SetTtlRequest = request('SetTtlRequest', { ttl_seconds: t.union([t.null, NonNegativeInteger]) });
export const AssignProjectRequest = request('AssignProjectRequest', { project_id: t.string });

export const GetSessionResponse = response('GetSessionResponse', {
  training_run_ids: t.array(t.string),
  sampler_ids: t.array(t.string),
  user_metadata: optional(UserMetadata),
  display_name: optional(t.string),
});
export type GetSessionResponse = types.GetSessionResponse;
export const ListSessionsResponse = response('ListSessionsResponse', { sessions: t.array(t.string) });
export type ListSessionsResponse = types.ListSessionsResponse;

const FailedReason = t.union([
  response('FailedRequest', { type: t.literal('request'), request_id: t.string, request_type: t.string }),
  response('FailedTrainingRun', { type: t.literal('training_run'), training_run_id: t.string }),
  response('FailedSamplingSession', { type: t.literal('sampling_session'), sampling_session_id: t.string }),
]);
/** How a session stands or ended. A type this release does not know is kept as `{ type }`. */
export const SessionStatus = t.union([
  response('SessionActive', { type: t.literal('active') }),
  response('SessionFailed', { type: t.literal('failed'), category: t.string, reason: FailedReason, message: t.string }),
  response('SessionCancelled', { type: t.literal('cancelled'), detail: optional(t.string) }),
  response('SessionClientFinished', {
    type: t.literal('client_finished'),
    reason: response('FinishReason', { type: t.string }),
    detail: optional(t.string),
  }),
  response('SessionStatus', { type: t.string }),
]);
export type SessionStatus = types.SessionStatus;

export const SessionSearchCursor = response('SessionSearchCursor', {
  last_created_at: Timestamp,
  last_session_id: t.string,
});
export type SessionSearchCursor = types.SessionSearchCursor;

const StatusQuery = t.union(
  [
    request('StatusQuery', {
      type: t.union([t.literal('active'), t.literal('cancelled'), t.literal('failed')]),
    }),
    request('ClientFinishedQuery', { type: t.literal('client_finished'), reasons: optional(t.array(FinishStatus)) }),
  ],
  'a session status query',
);
const SearchOwner = t.union(
  [
    request('SearchOwner', { type: t.union([t.literal('own'), t.literal('accessible')]) }),
    request('UserSearchOwner', { type: t.literal('user'), owner_urns: t.array(t.string) }),
  ],
  'a search owner',
);
export const SessionSearchRequest = request('SessionSearchRequest', {
  session_id: optional(t.string),
  project_ids: optional(t.array(t.string)),
  user_metadata: withDefault(UserMetadata, {}),
  display_name: optional(t.string),
  owner: withDefault(SearchOwner, { type: 'own' }),
  statuses: optional(t.array(StatusQuery)),
  limit: withDefault(PositiveInteger, 50),
  cursor: optional(SessionSearchCursor),
});
export const SessionSummary = response('SessionSummary', {
  session_id: t.string,
  created_at: Timestamp,
  owner: t.string,
  project_id: t.string,
  status: optional(SessionStatus),
  checkpoints_count: NonNegativeInteger,
  display_name: optional(t.string),
  user_metadata: optional(UserMetadata),
  checkpoint_storage_bytes: optional(NonNegativeInteger),
});
export type SessionSummary = types.SessionSummary;
export const SessionSearchResponse = response('SessionSearchResponse', {
  sessions: t.array(SessionSummary),
  next_cursor: optional(SessionSearchCursor),
});
export type SessionSearchResponse = types.SessionSearchResponse;

export const CheckpointSearchCursor = response('CheckpointSearchCursor', {
  last_created_at: Timestamp,
  last_checkpoint_uuid: t.string,
});
export type CheckpointSearchCursor = types.CheckpointSearchCursor;
export const CheckpointSearchRequest = request('CheckpointSearchRequest', {
  project_ids: optional(t.array(t.string)),
  user_metadata: withDefault(UserMetadata, {}),
  checkpoint_type: optional(CheckpointKind),
  owner: withDefault(SearchOwner, { type: 'own' }),
  base_models: optional(t.array(t.string)),
  limit: withDefault(PageSize, 50),
  cursor: optional(CheckpointSearchCursor),
});
export const CheckpointSearchResponse = response('CheckpointSearchResponse', {
  checkpoints: t.array(Checkpoint),
  next_cursor: optional(CheckpointSearchCursor),
});
export type CheckpointSearchResponse = types.CheckpointSearchResponse;

export const TraceExportResponse = response('TraceExportResponse', {
  status: t.union([t.literal('pending'), t.literal('ready'), t.literal('failed')]),
  url: optional(t.string),
  error: optional(t.string),
});
