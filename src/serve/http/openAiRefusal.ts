import type { GatewayError } from './GatewayError.js';

/** How OpenAI's API writes an error. */
export const openAiRefusal = ({ status, message, field, extra }: GatewayError): object => ({
  error: {
    message,
    type: status === 401 ? 'authentication_error' : status < 500 ? 'invalid_request_error' : 'api_error',
    param: field ?? null,
    code: extra.code ?? (status === 404 && field === 'model' ? 'model_not_found' : null),
  },
});
