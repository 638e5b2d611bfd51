import {
  ApiKeyResponse,
  AuditLogResponse,
  BillingUsageResponse,
  CheckpointStorageUsageResponse,
} from '../wire/admin.js';
import type { Observable } from 'rxjs';
import { ValidationError } from '../wire/tinkerError.js';
import { optionNames, type CallOptions } from './CallOptions.js';
import { RestCaller, type RestCall } from './rest/RestCaller.js';
import { withQuery } from './rest/restQuery.js';
import type { TinkerFuture } from './TinkerFuture.js';

/** Options of `AdminClient.getAuditLog`. */
export interface AuditLogOptions extends CallOptions {
  /** Default `all`. */
  readonly eventType?: 'all' | 'checkpoints' | 'projects' | 'teams' | 'organizations';
  /** A day as `2026-01-31`. Default: the latest. */
  readonly day?: string;
}
/** Options of `AdminClient.getBillingUsage`. */
export interface BillingUsageOptions extends CallOptions {
  /** The first moment, as ISO 8601 text or a Date. */
  readonly startingOn: string | Date;
  /** The moment after the last, as ISO 8601 text or a Date. */
  readonly endingBefore: string | Date;
}
/** Options of `AdminClient.getCurrentCheckpointStorageUsage`. */
export interface StorageUsageOptions extends CallOptions {
  /** Only this project. Default: all of them. */
  readonly projectId?: string;
}

const AUDIT_OPTIONS = optionNames<AuditLogOptions>({ eventType: true, day: true });
const USAGE_OPTIONS = optionNames<BillingUsageOptions>({ startingOn: true, endingBefore: true });
const STORAGE_OPTIONS = optionNames<StorageUsageOptions>({ projectId: true });

/** What an organisation's administrators need: audit log, usage, and the API key in use. */
export class AdminClient extends RestCaller {
  /** Who did what, one day at a time. */
  getAuditLog(options: AuditLogOptions = {}): TinkerFuture<AuditLogResponse> {
    const call = (): RestCall => {
      const { eventType = 'all', day } = options;
      return { method: 'GET', path: withQuery('audit', { event_type: eventType, day }) };
    };
    return this.ask('get_audit_log', call, AuditLogResponse, options, AUDIT_OPTIONS);
  }

  /** What was used and billed from one moment to another. */
  getBillingUsage(options: BillingUsageOptions): TinkerFuture<BillingUsageResponse> {
    const usage = (): Observable<BillingUsageResponse> => {
      const { startingOn, endingBefore } = options ?? {};
      const path = withQuery('billing/usage/events', {
        starting_on: isoTime(startingOn, 'startingOn'),
        ending_before: isoTime(endingBefore, 'endingBefore'),
      });
      return this.asking('get_billing_usage', { method: 'GET', path }, BillingUsageResponse);
    };
    return this.start(options, usage, USAGE_OPTIONS);
  }

  /** How much room checkpoints take at this moment. */
  getCurrentCheckpointStorageUsage(options: StorageUsageOptions = {}): TinkerFuture<CheckpointStorageUsageResponse> {
    const call = (): RestCall => ({
      method: 'GET',
      path: withQuery('billing/usage/checkpoints/current', { project_id: options.projectId }),
    });
    return this.ask(
      'get_current_checkpoint_storage_usage',
      call,
      CheckpointStorageUsageResponse,
      options,
      STORAGE_OPTIONS,
    );
  }

  /** What the service knows of the API key in use. */
  getApiKey(options: CallOptions = {}): TinkerFuture<ApiKeyResponse> {
    return this.ask('get_api_key', () => ({ method: 'GET', path: 'auth/apikey/me' }), ApiKeyResponse, options);
  }

  /** Revokes the API key in use. */
  deleteApiKey(options: CallOptions = {}): TinkerFuture<void> {
    return this.tell('delete_api_key', () => ({ method: 'DELETE', path: 'auth/apikey/me' }), options);
  }
}

function isoTime(time: string | Date, name: string): string {
  if (typeof time === 'string') return time;
  if (!(time instanceof Date) || Number.isNaN(time.getTime()))
    throw new ValidationError(`${name} must be a time: ISO 8601 text or a Date`);
  return time.toISOString().replace('.000Z', 'Z');
}
