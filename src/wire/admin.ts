import * as t from 'io-ts';
import { Finite, NonNegativeInteger } from './number.js';
import { optional, response, withDefault } from './record.js';
import { UserMetadata } from './session.js';
import type * as types from './adminTypes.js';

export const AuditLogResponse = response('AuditLogResponse', {
  entries: t.array(
    response('AuditLogEntry', {
      timestamp: t.string,
      event: t.string,
      event_details: withDefault(t.UnknownRecord, {}),
      model_id: optional(t.string),
      tinker_path: optional(t.string),
      purpose: optional(t.string),
    }),
  ),
});
export type AuditLogResponse = types.AuditLogResponse;

/** What was billed: tokens trained or sampled, checkpoints, or storage. Fields not of its kind are absent. */
export const BillingEventInfo = response('BillingEventInfo', {
  type: t.string,
  token_count: optional(NonNegativeInteger),
  cached: optional(t.boolean),
  count: optional(NonNegativeInteger),
  gigabyte_hours: optional(Finite),
});
export type BillingEventInfo = types.BillingEventInfo;

export const BillingUsageResponse = response('BillingUsageResponse', {
  data: t.array(
    response('BillingUsageEvent', {
      bucket_start: t.string,
      bucket_end: t.string,
      base_model: optional(t.string),
      user_id: optional(t.string),
      user_name: optional(t.string),
      session_id: optional(t.string),
      project_id: optional(t.string),
      estimated_cost_usd: optional(Finite),
      effective_rate_usd_per_million_tokens: optional(Finite),
      effective_rate_usd_per_gigabyte_month: optional(Finite),
      event_info: BillingEventInfo,
    }),
  ),
  sessions: withDefault(
    t.record(t.string, response('BillingUsageSession', { user_metadata: optional(UserMetadata) })),
    {},
  ),
  cost_data_through: optional(t.string),
});
export type BillingUsageResponse = types.BillingUsageResponse;

export const CheckpointStorageUsageResponse = response('CheckpointStorageUsageResponse', {
  effective_rate_usd_per_gigabyte_month: optional(Finite),
  data: t.array(
    response('CheckpointStorageUsageItem', {
      project_id: optional(t.string),
      org_user_urn: optional(t.string),
      user_email: optional(t.string),
      user_name: optional(t.string),
      checkpoint_count: NonNegativeInteger,
      size_bytes: NonNegativeInteger,
      size_gigabytes: Finite,
      estimated_monthly_cost_usd: optional(Finite),
    }),
  ),
});
export type CheckpointStorageUsageResponse = types.CheckpointStorageUsageResponse;

export const ApiKeyResponse = response('ApiKeyResponse', {
  key_id: optional(t.union([t.string, NonNegativeInteger])),
  name: optional(t.string),
  note: optional(t.string),
  details: optional(
    response('ApiKeyDetails', {
      org_details: optional(response('OrgDetails', { name: t.string })),
      user_details: optional(response('UserDetails', { email: t.string })),
    }),
  ),
});
export type ApiKeyResponse = types.ApiKeyResponse;
