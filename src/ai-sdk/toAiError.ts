import { APIStatusError, isTinkerError } from '../client/errors.js';
import { RendererError } from '../chat/renderers/core/RendererError.js';

/**
 * A failure as the AI SDK knows it. None is marked as worth a retry: the client has retried already, for as long as it
 * made sense, and a second layer would only repeat it.
 */
export async function toAiError(error: unknown, modelId: string): Promise<unknown> {
  if (!isTinkerError(error)) return error;
  const { AISDKError, APICallError, UnsupportedFunctionalityError } = await import('@ai-sdk/provider');
  const { message } = error;
  if (error instanceof RendererError) {
    return new UnsupportedFunctionalityError({ functionality: message, message });
  }
  if (error instanceof APIStatusError) {
    return new APICallError({
      message,
      url: `tinker:${modelId}`,
      requestBodyValues: {},
      statusCode: error.status,
      responseHeaders: { ...error.headers },
      responseBody: typeof error.body === 'string' ? error.body : JSON.stringify(error.body),
      cause: error,
      isRetryable: false,
    });
  }
  return new AISDKError({ name: 'AI_TinkerError', message, cause: error });
}
