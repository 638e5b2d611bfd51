import type { Renderer } from '../chat/renderers/core/Renderer.js';
import type { SamplingClient } from '../client/SamplingClient.js';
import { systemUuid } from '../transport/system.js';
import type { ChatModel } from './completion/ChatRequest.js';
import { ModelShelf, type SamplerSourceClient } from './models/ModelShelf.js';
import { positive, startGateway, type GatewayOptions, type ServedGateway } from './startGateway.js';

/** What {@link serveSampler} needs of a sampler. A `SamplingClient` is one. */
export type ServedSampler = Pick<SamplingClient, 'sample' | 'getRenderer' | 'getBaseModel'>;

/** Options of {@link serveSampler}. */
export interface ServeOptions extends GatewayOptions {
  /** The name of the model in answers and lists. Default: the base model's. */
  readonly modelName?: string;
  /** Writes and reads conversations. Default: the one recommended for the model. */
  readonly renderer?: Renderer;
  /** Opens checkpoints that callers name as `model`: `tinker://…/sampler_weights/…` or `run@step`. Default: none can be named. */
  readonly service?: SamplerSourceClient;
  /** Most checkpoints kept open. Default 4. */
  readonly maxModels?: number;
  /** Maximum tokens that one request may sample. Default 16,384. */
  readonly maxTokens?: number;
  /** Streams in pieces of this many tokens, each a separate request. Default: streams deliver the finished answer. */
  readonly pieceTokens?: number;
  /** How often an answer that does not fit its JSON schema is sampled again. Default 2. */
  readonly jsonRetries?: number;
}

/**
 * Serves a sampler over HTTP, in the shapes of OpenAI's chat completions, completions and responses and of Anthropic's
 * messages, so that any client of those APIs can talk to a model in training.
 *
 * ```ts
 * const gateway = await serveSampler(sampler);
 * const client = new OpenAI({ baseURL: gateway.baseURL, apiKey: gateway.apiKey });
 * ```
 * Listens on this machine only by default, and always asks for a key. A field that it cannot honour is a 400
 * that names it. Rejects with the system's error when the port is taken.
 */
export async function serveSampler(sampler: ServedSampler, options: ServeOptions = {}): Promise<ServedGateway> {
  const { renderer, service, jsonRetries = 2, pieceTokens } = options;
  const maxTokens = positive('maxTokens', options.maxTokens ?? 16_384);
  if (pieceTokens !== undefined) positive('pieceTokens', pieceTokens);
  const mainName = options.modelName ?? (await sampler.getBaseModel());
  const open = async (): Promise<ChatModel> => ({
    sampler,
    renderer: renderer ?? (await sampler.getRenderer()),
    newId: systemUuid,
  });
  const shelf = new ModelShelf({
    main: { name: mainName, open },
    service,
    renderer,
    most: positive('maxModels', options.maxModels ?? 4),
    newId: systemUuid,
  });
  return startGateway(
    {
      find: (model) => shelf.find(model),
      mainName,
      maxTokens,
      pieceTokens,
      jsonRetries,
      nowMs: () => Date.now(),
      newId: systemUuid,
      onReply: () => undefined,
    },
    () => shelf.names(),
    options,
  );
}
