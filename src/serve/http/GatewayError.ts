import { APIStatusError, isTinkerError, RequestFailedError } from '../../client/errors.js';

/** A request that is refused, and why, whichever API it came through. */
export class GatewayError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** The field that is at fault, as the API spells it. */
    readonly field?: string,
    readonly extra: {
      /** What clients match on, such as `context_length_exceeded`. */
      readonly code?: string;
      /** When another try makes sense. */
      readonly retryAfterSeconds?: number;
      /** Machine-readable reasons, where an API has them. */
      readonly details?: object;
    } = {},
  ) {
    super(message);
    this.name = 'GatewayError';
  }
}

/**
 * What a caller is told of a failure. A refusal of our own key is not theirs: it is a bad gateway, and nothing of the
 * key is in it. What they asked for wrongly is a 400; all else says whose fault it is and that they may try again.
 */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (!isTinkerError(error)) return new GatewayError(500, 'internal error');
  const { code, message } = error;
  if (code === 'invalid_input' || code === 'renderer') return new GatewayError(400, message);
  if (error instanceof RequestFailedError && error.category === 'user') return new GatewayError(400, message);
  if (error instanceof APIStatusError) {
    const { status } = error;
    if (status === 401 || status === 403) return new GatewayError(502, 'the service refused the key of this gateway');
    if (status === 429) return new GatewayError(429, 'the service is busy', undefined, { retryAfterSeconds: 1 });
    if (status === 400 || status === 422) return new GatewayError(400, message);
    if (status === 404) return new GatewayError(404, message, 'model');
    return new GatewayError(502, message);
  }
  if (code === 'closed') return new GatewayError(503, 'this gateway is closing');
  if (code === 'timeout') return new GatewayError(504, message);
  if (code === 'connection' || code === 'stuck') return unreachable();
  return new GatewayError(502, message);
}

/** The service behind the gateway does not answer. */
export const unreachable = (): GatewayError =>
  new GatewayError(503, 'the service behind this gateway does not answer', undefined, { retryAfterSeconds: 5 });

/** How OpenAI's API writes an error. */
export const openAiRefusal = ({ status, message, field, extra }: GatewayError): object => ({
  error: {
    message,
    type: status === 401 ? 'authentication_error' : status < 500 ? 'invalid_request_error' : 'api_error',
    param: field ?? null,
    code: extra.code ?? (status === 404 && field === 'model' ? 'model_not_found' : null),
  },
});
