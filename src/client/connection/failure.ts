import { retryAfterMs } from '../../transport/retryAfter.js';
import { TransportFailure, type TransportResponse } from '../../transport/Transport.js';
import {
  APIConnectionError,
  APIResponseValidationError,
  APIStatusError,
  APITimeoutError,
  AuthenticationError,
  BadRequestError,
  BillingError,
  ConflictError,
  GoneError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  UnprocessableEntityError,
  UnsupportedVersionError,
  ValidationError,
  type APIStatusErrorOptions,
  type TinkerError,
} from '../errors.js';
import { plainLine } from '../../support/plainText.js';
import { parseBody } from './answer.js';
import { serverText } from './serverText.js';

/** What was being done when it failed: a submission, a poll for a result, or the submission of a sample. */
export type Phase = 'send' | 'poll' | 'sample';

/**
 * What a failure means. This is the only place that decides it: sends, polls and sampling share the table and differ
 * only in how long they wait.
 *
 * - `backoff`: try again, later each time.
 * - `again`: try again at once; the server is only saying "not yet".
 * - `reset`: the server closed a connection that it had no more use for; try again at once on a new one.
 * - `proxy`: a proxy refused it with an empty body; try again on a new connection, a bounded number of times.
 * - `doubtful`: a 400 to a poll; some proxies inject it, so it counts only when it repeats.
 * - `billing`: pause until the account can pay again.
 * - `throttle`: too much sampling at once; pause all of it, then send the same request again.
 * - `resubmit`: the promise is gone; only a new request can help.
 * - `fatal`: trying again cannot help.
 */
export type Meaning =
  | 'backoff'
  | 'again'
  | 'reset'
  | 'proxy'
  | 'doubtful'
  | 'billing'
  | 'throttle'
  | 'resubmit'
  | 'fatal';

export function classifyFailure(error: unknown, phase: Phase): Meaning {
  if (error instanceof APIConnectionError) {
    if (!error.retryable) return 'fatal';
    return error.cause instanceof TransportFailure && error.cause.kind === 'reset' ? 'reset' : 'backoff';
  }
  if (!(error instanceof APIStatusError)) return 'fatal';
  const { status, headers, body } = error;
  if (status === 402) return 'billing';
  if (status === 429 && phase === 'sample') return 'throttle';
  if (status === 410 && phase === 'poll') return 'resubmit';
  if (status === 400 && body === '') return 'proxy';
  // The header is about sending a request again; a poll only asks for the state of the work.
  if (phase !== 'poll' && headers['x-should-retry'] === 'false') return 'fatal';
  if (phase !== 'poll' && headers['x-should-retry'] === 'true') return 'backoff';
  if (status === 400 && phase === 'poll' && !(error instanceof UnsupportedVersionError)) return 'doubtful';
  if (phase === 'poll' && (status === 408 || status >= 500)) return 'again';
  return status === 408 || status === 409 || status === 429 || status >= 500 ? 'backoff' : 'fatal';
}

/** Whether the service may have accepted the request: no answer came, or one that may follow an acceptance. */
export function mayHaveArrived(error: unknown): boolean {
  if (!(error instanceof APIStatusError))
    return error instanceof APIConnectionError || error instanceof APIResponseValidationError;
  return error.status >= 500 || error.status === 408 || error.status === 409;
}

/**
 * Whether a send's last failure proves that the service does not have the request. After an earlier try that may have
 * arrived, only a refusal of the content does: the service would have answered a known request with its promise.
 */
export function provesRefusal(error: unknown, mayHaveArrivedBefore: boolean): boolean {
  if (mayHaveArrived(error)) return false;
  if (!mayHaveArrivedBefore) return true;
  return error instanceof APIStatusError && [400, 413, 415, 422].includes(error.status);
}

const CLASS_BY_STATUS: Readonly<
  Record<number, new (message: string, options: APIStatusErrorOptions) => APIStatusError>
> = {
  400: BadRequestError,
  401: AuthenticationError,
  402: BillingError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  410: GoneError,
  422: UnprocessableEntityError,
  429: RateLimitError,
};

/**
 * The error of an unsuccessful response. `what` names the call, such as `POST /api/v1/optim_step`; `nowMs` is when
 * it came, for a `retry-after` that is a date. It never throws, whatever the response holds.
 */
export function statusError(response: TransportResponse, what: string, nowMs: number): APIStatusError {
  const body = readBody(response);
  const { status, headers } = response;
  const detail = serverText(body);
  const outdated = status === 400 && /no longer supported/i.test(detail);
  const Class = outdated
    ? UnsupportedVersionError
    : (CLASS_BY_STATUS[status] ?? (status >= 500 ? InternalServerError : APIStatusError));
  const message = `${what}: ${status}${detail === '' ? '' : ` ${detail}`}${outdated ? ' (upgrade tinker-rx, or set the sdkVersion option)' : ''}`;
  const error = new Class(message, {
    status,
    headers,
    body,
    requestId: headers['x-request-id'],
    retryAfterMs: retryAfterMs(headers, nowMs),
  });
  return withRetryable(error);
}

/** The body of a refusal, or a note that it cannot be read. */
function readBody(response: TransportResponse): unknown {
  try {
    return parseBody(response);
  } catch {
    return '[a body too large to read]';
  }
}

function withRetryable(error: APIStatusError): APIStatusError {
  const meaning = classifyFailure(error, 'send');
  return Object.assign(error, { retryable: meaning !== 'fatal' });
}

/** The error of a request that got no answer. */
export function connectionError(failure: TransportFailure, what: string): TinkerError {
  const message = `${what}: ${plainLine(failure.message)}`;
  switch (failure.kind) {
    case 'request':
      return new ValidationError(`${message} (the request cannot be sent as it is)`, { cause: failure });
    case 'answer':
      return new APIResponseValidationError(message, { cause: failure });
    case 'untrusted':
      return new APIConnectionError(`${message} (for a custom certificate, set NODE_EXTRA_CA_CERTS)`, {
        cause: failure,
      });
    case 'timeout':
      return new APITimeoutError(message, { retryable: true, cause: failure });
    case 'proxy':
      return new APIConnectionError(`${message} (the proxy wants a user and a password in HTTPS_PROXY)`, {
        cause: failure,
      });
    case 'reset':
    case 'connection':
      return new APIConnectionError(message, { retryable: true, cause: failure });
  }
}
