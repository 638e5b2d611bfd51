import { RequestFailedError, TinkerError, type TinkerErrorCode, type TinkerErrorOptions } from '../wire/tinkerError.js';

export {
  isTinkerError,
  RequestFailedError,
  TinkerError,
  ValidationError,
  type TinkerErrorCode,
} from '../wire/tinkerError.js';
export { CredentialError } from '../transport/auth.js';

/** What an {@link APIStatusError} is made of. */
export interface APIStatusErrorOptions extends TinkerErrorOptions {
  /** The HTTP status, such as 404. */
  readonly status: number;
  /** The response's headers, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The parsed body where it was JSON, else its text. */
  readonly body: unknown;
}

/** The service answered with an unsuccessful status. */
export class APIStatusError extends TinkerError {
  readonly code: TinkerErrorCode = 'status';
  /** The HTTP status, such as 404. */
  readonly status: number;
  /** The response's headers, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The parsed body if it was JSON, otherwise its text. */
  readonly body: unknown;

  constructor(message: string, { status, headers, body, ...options }: APIStatusErrorOptions) {
    super(message, options);
    this.status = status;
    this.headers = headers;
    this.body = body;
  }
}
/** Status 400: the service could not read the request. */
export class BadRequestError extends APIStatusError {
  override readonly code = 'bad_request';
}
/** Status 401: the API key is missing, wrong or revoked. */
export class AuthenticationError extends APIStatusError {
  override readonly code = 'authentication';
}
/** The account cannot pay; raised when the pause for it has lasted too long. */
export class BillingError extends APIStatusError {
  override readonly code = 'billing';
}
/** Status 403: the key is valid but may not do this. */
export class PermissionDeniedError extends APIStatusError {
  override readonly code = 'permission_denied';
}
/** Status 404: there is no such run, checkpoint, session or endpoint. */
export class NotFoundError extends APIStatusError {
  override readonly code = 'not_found';
}
/** Status 409: something with this name or id exists already. */
export class ConflictError extends APIStatusError {
  override readonly code = 'conflict';
}
/** Status 410: the service no longer has the result. A sample is submitted again; a training operation fails with this. */
export class GoneError extends APIStatusError {
  override readonly code = 'gone';
}
/** Status 422: the service read the request and rejected its content. */
export class UnprocessableEntityError extends APIStatusError {
  override readonly code = 'unprocessable';
}
/** Status 429: too many requests. The client retries automatically before it reports this. */
export class RateLimitError extends APIStatusError {
  override readonly code = 'rate_limit';
}
/** Status 500 or above: the service failed. The client retries automatically before it reports this. */
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

/**
 * An earlier request of this model failed, and the service may not have it: it would wait for its number forever, so
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
