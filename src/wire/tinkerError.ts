import type { RequestErrorCategory } from './futures.js';

const BRAND = Symbol.for('tinker-rx/error');

export interface TinkerErrorOptions {
  /** Whether the same call may succeed later. */
  readonly retryable?: boolean;
  /** The service's id of the request that failed. */
  readonly requestId?: string | undefined;
  /** How long the server asked to wait before the next try, in milliseconds, where it said so. */
  readonly retryAfterMs?: number | undefined;
  /** The underlying error, if any. */
  readonly cause?: unknown;
}

/** The codes of this library's errors: stable words, the same across releases. docs/errors.md says when each occurs. */
export type TinkerErrorCode =
  | 'authentication'
  | 'bad_request'
  | 'bad_row'
  | 'billing'
  | 'cancelled'
  | 'closed'
  | 'conflict'
  | 'connection'
  | 'credential'
  | 'custom_loss'
  | 'event_stream'
  | 'gone'
  | 'invalid_input'
  | 'invalid_response'
  | 'missing_request'
  | 'not_found'
  | 'permission_denied'
  | 'rate_limit'
  | 'renderer'
  | 'request_failed'
  | 'rollouts_failed'
  | 'server'
  | 'source'
  | 'status'
  | 'stuck'
  | 'timeout'
  | 'tokenizer'
  | 'unexpected'
  | 'unprocessable'
  | 'unsupported_version';

/** Every failure of this library. The set of subclasses is closed; `code` is stable and the same across releases. */
export abstract class TinkerError extends Error {
  /** A stable word for the kind of failure, such as `not_found`. Compare this rather than the message. */
  abstract readonly code: TinkerErrorCode;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** The service's id of the failed request, if it had one. Include it when you contact support. */
  readonly requestId?: string;
  /** How long the server asked to wait before the next try, in milliseconds: at most a minute; absent if it did not say. */
  readonly retryAfterMs?: number;
  readonly [BRAND] = true;

  constructor(message: string, { retryable = false, requestId, retryAfterMs, cause }: TinkerErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.retryable = retryable;
    if (requestId !== undefined) this.requestId = requestId;
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }
}

/** Whether a value is a TinkerError, also one made by another copy of this package. */
export const isTinkerError = (value: unknown): value is TinkerError =>
  typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[BRAND] === true;

/** An input that cannot be sent: found before anything went out, so nothing is lost and the next call works. */
export class ValidationError extends TinkerError {
  readonly code = 'invalid_input';
}

/** The service accepted the work and then failed at it. `category` tells whose fault it was. */
export class RequestFailedError extends TinkerError {
  readonly code = 'request_failed';
  /** Whose fault it was, as the service reports it: `user`, `server` or `unknown`. */
  readonly category: RequestErrorCategory;

  constructor(
    message: string,
    { category, ...options }: TinkerErrorOptions & { readonly category: RequestErrorCategory },
  ) {
    super(message, options);
    this.category = category;
  }
}
