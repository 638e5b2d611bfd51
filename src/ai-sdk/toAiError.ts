import { APIStatusError, isTinkerError } from '../client/errors.js';
import { RendererError } from '../chat/renderers/core/RendererError.js';

/**
 * A failure as the AI SDK knows it. One of a sampler is not marked as worth a retry: the client has retried already, for as long as it
 * made sense, and a second layer would only repeat it. Inference endpoints are asked once (`isHosted`), so there the AI SDK retries.
 */
export async function toAiError(error: unknown, modelId: string, isHosted: boolean): Promise<unknown> {
  if (!isTinkerError(error)) return error;
  const isRetryable = isHosted && error.retryable;
  const { AISDKError, APICallError, UnsupportedFunctionalityError } = await import('@ai-sdk/provider');
  const { message } = error;
  if (error instanceof RendererError) {
    return new UnsupportedFunctionalityError({ functionality: message, message });
  }
  const asked = { message, url: `tinker:${modelId}`, requestBodyValues: {}, cause: error, isRetryable };
  if (error instanceof APIStatusError) {
    return new APICallError({
      ...asked,
      statusCode: error.status,
      responseHeaders: { ...error.headers },
      responseBody: typeof error.body === 'string' ? error.body : JSON.stringify(error.body),
    });
  }
  if (isRetryable) return new APICallError(asked);
  return new AISDKError({ name: 'AI_TinkerError', message, cause: error });
}
