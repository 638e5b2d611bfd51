import type { RequestErrorCategory } from '../wire/futures.js';
import { TinkerError, type TinkerErrorCode, type TinkerErrorOptions } from '../wire/tinkerError.js';

export { isTinkerError, TinkerError, ValidationError, type TinkerErrorCode } from '../wire/tinkerError.js';
export { CredentialError } from '../transport/auth.js';

export interface APIStatusErrorOptions extends TinkerErrorOptions {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The parsed body where it was JSON, else its text. */
  readonly body: unknown;
}

/** The service answered with an unsuccessful status. */
export class APIStatusError extends TinkerError {
  readonly code: TinkerErrorCode = 'status';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;

  constructor(message: string, { status, headers, body, ...options }: APIStatusErrorOptions) {
    super(message, options);
    this.status = status;
    this.headers = headers;
    this.body = body;
  }
}
export class BadRequestError extends APIStatusError {
  override readonly code = 'bad_request';
}
export class AuthenticationError extends APIStatusError {
  override readonly code = 'authentication';
}
/** The account cannot pay; raised when the pause for it has lasted too long. */
export class BillingError extends APIStatusError {
  override readonly code = 'billing';
}
export class PermissionDeniedError extends APIStatusError {
  override readonly code = 'permission_denied';
}
export class NotFoundError extends APIStatusError {
  override readonly code = 'not_found';
}
export class ConflictError extends APIStatusError {
  override readonly code = 'conflict';
}
/** The promise of a result is gone. A sample is submitted again; a training operation fails with this. */
export class GoneError extends APIStatusError {
  override readonly code = 'gone';
}
export class UnprocessableEntityError extends APIStatusError {
  override readonly code = 'unprocessable';
}
export class RateLimitError extends APIStatusError {
  override readonly code = 'rate_limit';
}
export class InternalServerError extends APIStatusError {
  override readonly code = 'server';
}
/** The service no longer takes the SDK version this client claims: upgrade, or set `sdkVersion`. */
export class UnsupportedVersionError extends APIStatusError {
  override readonly code = 'unsupported_version';
}

/** No answer came: the connection failed or broke. */
export class APIConnectionError extends TinkerError {
  readonly code: TinkerErrorCode = 'connection';
}
/** No answer came in time. */
export class APITimeoutError extends APIConnectionError {
  override readonly code = 'timeout';
}
/** Nothing of this sampling client made progress for two hours. */
export class StuckError extends APIConnectionError {
  override readonly code = 'stuck';
}

/** The answer does not follow the protocol; the message names the path, never the value. */
export class APIResponseValidationError extends TinkerError {
  readonly code = 'invalid_response';
}

/** The service accepted the work and then failed at it. `category` tells whose fault it was. */
export class RequestFailedError extends TinkerError {
  readonly code = 'request_failed';
  readonly category: RequestErrorCategory;

  constructor(
    message: string,
    { category, ...options }: TinkerErrorOptions & { readonly category: RequestErrorCategory },
  ) {
    super(message, options);
    this.category = category;
  }
}

/**
 * An earlier request of this model failed, and the service may not have it: it would wait for its number for ever, so
 * nothing else is sent. The message names the number. Make that call again as it was, or resume from the last save.
 */
export class MissingRequestError extends TinkerError {
  readonly code = 'missing_request';
}

/** The caller's own function (a custom loss) threw; `cause` is what it threw. */
export class CustomLossError extends TinkerError {
  readonly code = 'custom_loss';
}
/** The caller cancelled this future. */
export class CancelledError extends TinkerError {
  readonly code = 'cancelled';
}
/** The client was closed. */
export class ClosedError extends TinkerError {
  readonly code = 'closed';
}

/** Something failed that this library did not foresee; `cause` is what was thrown. Please report it. */
export class UnexpectedError extends TinkerError {
  readonly code = 'unexpected';
}

/** Whether the caller could have avoided this failure: a 4xx other than 408 and 429, bad input, or the service says so. */
export function isUserError(error: unknown): boolean {
  if (error instanceof RequestFailedError) return error.category === 'user';
  if (error instanceof APIStatusError)
    return error.status >= 400 && error.status < 500 && error.status !== 408 && error.status !== 429;
  return error instanceof TinkerError && (error.code === 'invalid_input' || error.code === 'custom_loss');
}
