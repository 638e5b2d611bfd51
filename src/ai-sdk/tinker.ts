import { catchError, concatMap, from, lastValueFrom, map, Observable, takeUntil } from 'rxjs';
import type { Renderer } from '../chat/renderers/core/Renderer.js';
import type { SamplingClient } from '../client/SamplingClient.js';
import type { ChatDelta, ChatModel, ChatRequest } from '../serve/completion/ChatRequest.js';
import { streamChat } from '../serve/completion/streamChat.js';
import { hostedModel } from '../serve/hosted/hostedModel.js';
import { openHosted } from '../serve/hosted/streamHosted.js';
import { systemUuid } from '../transport/system.js';
import type { SamplingParams } from '../wire/sampling.js';
import { ValidationError } from '../wire/tinkerError.js';
import { toAiError } from './toAiError.js';
import { toRequest } from './toRequest.js';
import { toContent, toFinish, toMetadata, toUsage } from './toResult.js';
import { toStreamParts } from './toStreamParts.js';
import type { CallOptions, SpecificationVersion, StreamPart, TinkerLanguageModel } from './types.js';

/** What {@link tinker} needs of a sampler. A `SamplingClient` is one. */
export type ChatSampler = Pick<SamplingClient, 'sample' | 'getRenderer' | 'samplingSessionId'>;

/** Options of {@link tinker}. */
export interface TinkerModelOptions<V extends SpecificationVersion = 'v4'> {
  /** Writes and reads conversations. Default: the one recommended for the sampler's model. */
  readonly renderer?: Renderer;
  /** The name shown in results and telemetry. Default: the sampling session's id. */
  readonly modelId?: string;
  /** What a call leaves open: `maxTokens`, `temperature`, `topP`, `topK`, `seed`. */
  readonly samplingParams?: Omit<SamplingParams, 'stop'>;
  /**
   * Stream in pieces of this many tokens: text appears while it is sampled, and every piece is a separate request.
   * Default: one request; a stream then delivers the answer when it is complete.
   */
  readonly pieceTokens?: number;
  /** `'v4'` for the AI SDK 7 (default), `'v3'` for the AI SDK 6. */
  readonly specification?: V;
  /**
   * For a model by name: `hosted` for the inference endpoint of the Tinker service at `TINKER_BASE_URL`, or the base URL of any service with
   * Anthropic's API, to which `/v1/messages` is added. Default `hosted`.
   */
  readonly endpoint?: 'hosted' | (string & {});
  /** The key for `endpoint`. Default: `TINKER_API_KEY`, the output of `TINKER_CREDENTIAL_CMD`, or the stored key. */
  readonly apiKey?: string;
}

/**
 * A sampler as a language model of the Vercel AI SDK: for `generateText`, `streamText`, tools and agents.
 *
 * Retries of a sampler are this library's own; `abortSignal` cancels the sample on the server. Token ids and logprobs are in
 * `providerMetadata.tinker`. What the service cannot do is a warning in the result.
 * ```ts
 * const { text } = await generateText({ model: tinker(sampler), prompt: 'What is the capital of France?' });
 * ```
 * A checkpoint by its path is asked through the service's inference endpoint instead, where text streams while it is sampled, and ids of tokens
 * are not told: `tinker('tinker://run/sampler_weights/final', { endpoint: 'hosted' })`. This was not run on the hosted service.
 *
 * @throws ValidationError for a `pieceTokens` below 1
 */
export function tinker<V extends SpecificationVersion = 'v4'>(
  sampler: ChatSampler | string,
  options: TinkerModelOptions<V> = {},
): TinkerLanguageModel<V> {
  const isHosted = typeof sampler === 'string';
  const { modelId = isHosted ? sampler : sampler.samplingSessionId, samplingParams = {}, pieceTokens } = options;
  if (pieceTokens !== undefined && !(Number.isSafeInteger(pieceTokens) && pieceTokens >= 1)) {
    throw new ValidationError(`pieceTokens must be an integer ≥ 1, got ${pieceTokens}`);
  }
  const deltas = isHosted ? hostedDeltas(sampler, options) : sampledDeltas(sampler, options);
  const failing = async (error: unknown): Promise<never> => {
    throw await toAiError(error, modelId, isHosted);
  };

  const doGenerate: TinkerLanguageModel['doGenerate'] = async (call) => {
    try {
      const { request, warnings } = toRequest(call, samplingParams, isHosted);
      const reply = await lastValueFrom(
        (await deltas(request, call)).pipe(
          concatMap((delta) => (delta.type === 'reply' ? [delta.reply] : [])),
          untilAborted(call.abortSignal),
        ),
      );
      return {
        content: toContent(reply),
        finishReason: toFinish(reply),
        usage: toUsage(reply),
        providerMetadata: toMetadata(reply),
        response: { modelId },
        warnings,
      };
    } catch (error) {
      return failing(error);
    }
  };

  const doStream: TinkerLanguageModel['doStream'] = async (call) => {
    try {
      const { request, warnings } = toRequest(call, samplingParams, isHosted);
      const found = await deltas({ ...request, ...(pieceTokens === undefined ? {} : { pieceTokens }) }, call);
      const parts = toStreamParts(found.pipe(untilAborted(call.abortSignal)), modelId, warnings).pipe(
        catchError((error: unknown) =>
          from(toAiError(error, modelId, isHosted)).pipe(map((known): StreamPart => ({ type: 'error', error: known }))),
        ),
      );
      return { stream: readableStream(parts) };
    } catch (error) {
      return failing(error);
    }
  };

  return {
    specificationVersion: (options.specification ?? 'v4') as V,
    provider: 'tinker',
    modelId,
    supportedUrls: {},
    doGenerate,
    doStream,
  };
}

type Ask = (request: ChatRequest, call: CallOptions) => Promise<Observable<ChatDelta>>;

function sampledDeltas(sampler: ChatSampler, options: TinkerModelOptions<SpecificationVersion>): Ask {
  let renderer: PromiseLike<Renderer> | Renderer | undefined = options.renderer;
  return async (request) => {
    renderer ??= sampler.getRenderer();
    const model: ChatModel = { sampler, renderer: await renderer, newId: systemUuid };
    return streamChat(model, request);
  };
}

function hostedDeltas(model: string, options: TinkerModelOptions<SpecificationVersion>): Ask {
  return async (request, { reasoning, toolChoice, abortSignal: signal }) =>
    openHosted(await hostedModel(model, options), request, { reasoning, toolChoice, signal });
}

/** Fails with the signal's reason, and so cancels what is in flight, when it aborts. */
function untilAborted<T>(signal: CallOptions['abortSignal']): (source: Observable<T>) => Observable<T> {
  if (signal === undefined) return (source) => source;
  const aborted = new Observable<never>((subscriber) => {
    const abort = (): void => subscriber.error(signal.reason);
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    return () => signal.removeEventListener('abort', abort);
  });
  return (source) => source.pipe(takeUntil(aborted));
}

/** Cancelling the stream unsubscribes. */
function readableStream<T>(source: Observable<T>): ReadableStream<T> {
  let stop = (): void => undefined;
  return new ReadableStream<T>({
    start: (controller) => {
      const subscription = source.subscribe({
        next: (value) => controller.enqueue(value),
        error: (error: unknown) => controller.error(error),
        complete: () => controller.close(),
      });
      stop = () => subscription.unsubscribe();
    },
    cancel: () => stop(),
  });
}
