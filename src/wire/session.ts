import * as t from 'io-ts';
import { Finite, Integer, NonNegativeInteger, PositiveInteger } from './number.js';
import { optional, request, response, withDefault } from './record.js';
import type * as types from './sessionTypes.js';

export const UserMetadata = t.record(t.string, t.string, 'a map of strings');
export type UserMetadata = Readonly<Record<string, string>>;

export const ClientConfigRequest = request('ClientConfigRequest', { sdk_version: t.string });

/** The service's flags, read once before anything else. */
export const ClientConfig = response('ClientConfig', {
  pjwt_auth_enabled: withDefault(t.boolean, false),
  credential_default_source: withDefault(t.string, 'api_key'),
  sample_dispatch_bytes_semaphore_size: withDefault(NonNegativeInteger, 10 * 1024 * 1024),
  inflight_response_bytes_semaphore_size: withDefault(NonNegativeInteger, 50 * 1024 * 1024),
  parallel_fwdbwd_chunks: withDefault(t.boolean, true),
  proto_compress_fwdbwd: withDefault(t.boolean, false),
  fwdbwd_max_chunk_len: withDefault(PositiveInteger, 1024),
  fwdbwd_max_chunk_bytes_count: withDefault(PositiveInteger, 5_000_000),
  fwdbwd_dispatch_bytes_semaphore_size: withDefault(NonNegativeInteger, 50_000_000),
  billing_exception_max_pause_duration_sec: withDefault(NonNegativeInteger, 3600),
  sample_no_retries: withDefault(t.boolean, false),
  sample_enable_stuck_detection: withDefault(t.boolean, true),
  sample_max_concurrent_requests: withDefault(PositiveInteger, 2000),
  create_model_via_load_weights: withDefault(t.boolean, false),
  sample_use_retrieve_futures: withDefault(t.boolean, false),
  sample_join_sampling_session: withDefault(t.boolean, false),
  custom_loss_server_side: withDefault(t.boolean, false),
});
export type ClientConfig = types.ClientConfig;

/** Flags that the service may change while a client runs. */
export const DynamicConfig = response('DynamicConfig', {
  refresh_interval_sec: withDefault(Finite, 300),
  sample_cancel_enabled: withDefault(t.boolean, false),
  sample_cancel_max_batch_size: withDefault(PositiveInteger, 64),
});
export type DynamicConfig = types.DynamicConfig;

export const AuthTokenResponse = response('AuthTokenResponse', { jwt: t.string });

export const CreateSessionRequest = request('CreateSessionRequest', {
  tags: t.array(t.string),
  user_metadata: withDefault(t.record(t.string, t.unknown), {}),
  sdk_version: t.string,
  project_id: optional(t.string),
  display_name: optional(t.string),
  type: withDefault(t.literal('create_session'), 'create_session'),
});
export const CreateSessionResponse = response('CreateSessionResponse', {
  session_id: t.string,
  info_message: optional(t.string),
  warning_message: optional(t.string),
  error_message: optional(t.string),
});

export const SessionHeartbeatRequest = request('SessionHeartbeatRequest', {
  session_id: t.string,
  type: withDefault(t.literal('session_heartbeat'), 'session_heartbeat'),
});

/** How a session ended, as the client reports it to the service. */
export const FinishStatus = t.union(
  [t.literal('success'), t.literal('errored'), t.literal('interrupted')],
  "'success' | 'errored' | 'interrupted'",
);
export type FinishStatus = t.TypeOf<typeof FinishStatus>;
export const FinishSessionRequest = request('FinishSessionRequest', {
  reason: request('FinishReason', { type: FinishStatus }),
  detail: optional(t.string),
});

export const SupportedModel = response('SupportedModel', {
  model_name: optional(t.string),
  max_context_length: optional(Integer),
  trainable: optional(t.boolean),
  sampleable: optional(t.boolean),
});
export type SupportedModel = types.SupportedModel;
export const GetServerCapabilitiesResponse = response('GetServerCapabilitiesResponse', {
  supported_models: t.array(SupportedModel),
});
export type GetServerCapabilitiesResponse = types.GetServerCapabilitiesResponse;
export const HealthResponse = response('HealthResponse', { status: t.string });
export type HealthResponse = t.TypeOf<typeof HealthResponse>;

export const TelemetrySendRequest = request('TelemetrySendRequest', {
  events: t.array(t.UnknownRecord),
  platform: t.string,
  sdk_version: t.string,
  session_id: t.string,
  process_uuid: t.string,
});
