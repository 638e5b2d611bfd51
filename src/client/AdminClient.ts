import {
  ApiKeyResponse,
  AuditLogResponse,
  BillingUsageResponse,
  CheckpointStorageUsageResponse,
} from '../wire/admin.js';
import type { CallOptions } from './CallOptions.js';
import { RestCaller } from './rest/RestCaller.js';
import { withQuery } from './rest/restQuery.js';
import type { TinkerFuture } from './TinkerFuture.js';

export interface AuditLogOptions extends CallOptions {
  /** Default `all`. */
  readonly eventType?: 'all' | 'checkpoints' | 'projects' | 'teams' | 'organizations';
  /** A day as `2026-01-31`. Default: the latest. */
  readonly day?: string;
}
export interface BillingUsageOptions extends CallOptions {
  /** The first moment, as ISO 8601 text or a Date. */
  readonly startingOn: string | Date;
  /** The moment after the last, as ISO 8601 text or a Date. */
  readonly endingBefore: string | Date;
}
export interface StorageUsageOptions extends CallOptions {
  /** Only this project. Default: all of them. */
  readonly projectId?: string;
}

/** What an organisation's administrators ask: audit log, usage, and the key at hand. */
export class AdminClient extends RestCaller {
  /** Who did what, one day at a time. */
  getAuditLog(options: AuditLogOptions = {}): TinkerFuture<AuditLogResponse> {
    const { eventType = 'all', day } = options;
    return this.ask(
      'get_audit_log',
      { method: 'GET', path: withQuery('audit', { event_type: eventType, day }) },
      AuditLogResponse,
      options,
    );
  }

  /** What was used and billed from one moment to another. */
  getBillingUsage(options: BillingUsageOptions): TinkerFuture<BillingUsageResponse> {
    const { startingOn, endingBefore } = options;
    const path = withQuery('billing/usage/events', {
      starting_on: isoTime(startingOn),
      ending_before: isoTime(endingBefore),
    });
    return this.ask('get_billing_usage', { method: 'GET', path }, BillingUsageResponse, options);
  }

  /** How much room checkpoints take at this moment. */
  getCurrentCheckpointStorageUsage(options: StorageUsageOptions = {}): TinkerFuture<CheckpointStorageUsageResponse> {
    const call = {
      method: 'GET',
      path: withQuery('billing/usage/checkpoints/current', { project_id: options.projectId }),
    } as const;
    return this.ask('get_current_checkpoint_storage_usage', call, CheckpointStorageUsageResponse, options);
  }

  /** What the service knows of the API key in use. */
  getApiKey(options: CallOptions = {}): TinkerFuture<ApiKeyResponse> {
    return this.ask('get_api_key', { method: 'GET', path: 'auth/apikey/me' }, ApiKeyResponse, options);
  }

  /** Revokes the API key in use. */
  deleteApiKey(options: CallOptions = {}): TinkerFuture<void> {
    return this.tell('delete_api_key', () => ({ method: 'DELETE', path: 'auth/apikey/me' }), options);
  }
}

const isoTime = (time: string | Date): string =>
  typeof time === 'string' ? time : time.toISOString().replace('.000Z', 'Z');
