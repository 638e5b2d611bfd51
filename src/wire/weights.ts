import * as t from 'io-ts';
import { NonNegativeInteger, PositiveInteger, TtlSeconds } from './number.js';
import { OptimizerConfig } from './optimizer.js';
import { optional, request, response, withDefault } from './record.js';
import { UserMetadata } from './session.js';
import { LoraConfig } from './training.js';
import type * as types from './modelTypes.js';

export const SaveWeightsRequest = request('SaveWeightsRequest', {
  model_id: t.string,
  path: optional(t.string),
  seq_id: optional(PositiveInteger),
  ttl_seconds: optional(TtlSeconds),
  overwrite: withDefault(t.boolean, false),
  user_metadata: optional(UserMetadata),
  type: withDefault(t.literal('save_weights'), 'save_weights'),
});
export const SaveWeightsResponse = response('SaveWeightsResponse', { path: t.string });

export const SaveWeightsForSamplerRequest = request('SaveWeightsForSamplerRequest', {
  model_id: t.string,
  path: optional(t.string),
  sampling_session_seq_id: optional(NonNegativeInteger),
  seq_id: optional(PositiveInteger),
  ttl_seconds: optional(TtlSeconds),
  user_metadata: optional(UserMetadata),
  // Python's SDK sends it from 0.38 on. The other kind, `inflight`, is not known here.
  kind: optional(t.literal('snapshot')),
  type: withDefault(t.literal('save_weights_for_sampler'), 'save_weights_for_sampler'),
});
export const SaveWeightsForSamplerResponse = response('SaveWeightsForSamplerResponse', {
  path: optional(t.string),
  sampling_session_id: optional(t.string),
});

const isRecipients = (u: unknown): u is string[] =>
  Array.isArray(u) && u.length <= 10 && u.every((recipient) => typeof recipient === 'string');
const AgeRecipients = new t.Type<string[]>(
  'at most 10 age recipients',
  isRecipients,
  (u, context) => (isRecipients(u) ? t.success(u) : t.failure(u, context)),
  t.identity,
);

export const SaveWeightsExternalRequest = request('SaveWeightsExternalRequest', {
  model_id: t.string,
  path: t.string,
  seq_id: optional(PositiveInteger),
  ttl_seconds: optional(TtlSeconds),
  age_encryption_recipients: optional(AgeRecipients),
  type: withDefault(t.literal('save_weights_external'), 'save_weights_external'),
});
export const SaveWeightsExternalResponse = response('SaveWeightsExternalResponse', {
  path: t.string,
  size_bytes: optional(NonNegativeInteger),
});

export const LoadWeightsRequest = request('LoadWeightsRequest', {
  model_id: optional(t.string),
  seq_id: optional(PositiveInteger),
  session_id: optional(t.string),
  model_seq_id: optional(NonNegativeInteger),
  base_model: optional(t.string),
  user_metadata: optional(UserMetadata),
  path: t.string,
  optimizer: t.boolean,
  optimizer_config: optional(OptimizerConfig),
  weights_access_token: optional(t.string),
  type: withDefault(t.literal('load_weights'), 'load_weights'),
});
export const LoadWeightsResponse = response('LoadWeightsResponse', {
  path: optional(t.string),
  model_id: optional(t.string),
});
export type LoadWeightsResponse = types.LoadWeightsResponse;

export const CopyWeightsRequest = request('CopyWeightsRequest', {
  session_id: optional(t.string),
  model_seq_id: optional(NonNegativeInteger),
  destination_project_id: optional(t.string),
  source_path: t.string,
  ttl_seconds: optional(TtlSeconds),
});
export const CopyWeightsResponse = response('CopyWeightsResponse', { tinker_path: t.string });

export const WeightsInfoRequest = request('WeightsInfoRequest', { tinker_path: t.string });
export const WeightsInfoResponse = response('WeightsInfoResponse', {
  base_model: t.string,
  optimizer_config: withDefault(OptimizerConfig, { type: 'adamw' }),
  is_lora: t.boolean,
  lora_rank: optional(NonNegativeInteger),
  train_unembed: optional(t.boolean),
  train_mlp: optional(t.boolean),
  train_attn: optional(t.boolean),
});
export type WeightsInfoResponse = types.WeightsInfoResponse;

export const ExternalWeightsUploadStartRequest = request('ExternalWeightsUploadStartRequest', {
  base_model: t.string,
  lora_config: LoraConfig,
  destination_project_id: optional(t.string),
});
/** Where to put each file, and until when. */
export const ExternalWeightsUpload = response('ExternalWeightsUploadStartResponse', {
  upload_id: t.string,
  urls: t.record(t.string, t.string),
  expires: t.string,
});
export type ExternalWeightsUpload = types.ExternalWeightsUpload;
export const ExternalWeightsUploadFinishRequest = request('ExternalWeightsUploadFinishRequest', {
  upload_id: t.string,
});
export const ExternalWeightsUploadFinishResponse = response('ExternalWeightsUploadFinishResponse', {
  tinker_path: t.string,
});
