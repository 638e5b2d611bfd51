import {
  ApiKeyResponse,
  AuditLogResponse,
  BillingUsageResponse,
  CheckpointStorageUsageResponse,
} from '../wire/admin.js';
import { RestCaller } from './rest/RestCaller.js';
import { withQuery } from './rest/restQuery.js';
import type { TinkerFuture } from './TinkerFuture.js';

export interface AuditLogOptions {
  /** Default `all`. */
  readonly eventType?: 'all' | 'checkpoints' | 'projects' | 'teams' | 'organizations';
  /** A day as `2026-01-31`. Default: the latest. */
  readonly day?: string;
}
export interface BillingUsageOptions {
  /** ISO 8601. */
  readonly startingOn: string | Date;
  readonly endingBefore: string | Date;
}

/** What an organisation's administrators ask: audit log, usage, and the key at hand. */
export class AdminClient extends RestCaller {
  getAuditLog({ eventType = 'all', day }: AuditLogOptions = {}): TinkerFuture<AuditLogResponse> {
    return this.ask(
      'get_audit_log',
      { method: 'GET', path: withQuery('audit', { event_type: eventType, day }) },
      AuditLogResponse,
    );
  }

  getBillingUsage({ startingOn, endingBefore }: BillingUsageOptions): TinkerFuture<BillingUsageResponse> {
    const path = withQuery('billing/usage/events', {
      starting_on: isoTime(startingOn),
      ending_before: isoTime(endingBefore),
    });
    return this.ask('get_billing_usage', { method: 'GET', path }, BillingUsageResponse);
  }

  getCurrentCheckpointStorageUsage({
    projectId,
  }: { readonly projectId?: string } = {}): TinkerFuture<CheckpointStorageUsageResponse> {
    const path = withQuery('billing/usage/checkpoints/current', { project_id: projectId });
    return this.ask('get_current_checkpoint_storage_usage', { method: 'GET', path }, CheckpointStorageUsageResponse);
  }

  /** What the service knows of the API key in use. */
  getApiKey(): TinkerFuture<ApiKeyResponse> {
    return this.ask('get_api_key', { method: 'GET', path: 'auth/apikey/me' }, ApiKeyResponse);
  }

  /** Revokes the API key in use. */
  deleteApiKey(): TinkerFuture<void> {
    return this.tell('delete_api_key', () => ({ method: 'DELETE', path: 'auth/apikey/me' }));
  }
}

const isoTime = (time: string | Date): string =>
  typeof time === 'string' ? time : time.toISOString().replace('.000Z', 'Z');
