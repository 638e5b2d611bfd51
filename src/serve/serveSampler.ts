/*
 * The path of a request:
 *
 *  1. http/GatewayServer        checks who asks (access, cors), counts it, and reads its body (readJson)
 *  2. routes                    finds the endpoint: chat/, responses/, completions/ or anthropic/
 *  3. the endpoint's request    reads the fields (http/Fields) into a ChatRequest, with warnings
 *  4. models/ModelCache         finds the model by its name, and opens checkpoints
 *  5. completion/repliesOf      samples; json/ checks JSON answers and samples again
 *  6. completion/streamChat     makes the prompt, and reads what was sampled (ReplyReader)
 *  7. models/lastingSampler     opens a lost sampler again; ServiceWatch notices a service that is gone
 *  8. the endpoint              writes the reply in the shape of its API
 *  9. http/sendAnswer           sends it, with heartbeats and deadlines
 */
import type { Renderer } from '../chat/renderers/core/Renderer.js';
import { systemUuid } from '../transport/system.js';
import { ValidationError } from '../wire/tinkerError.js';
import { SchemaChecker } from './json/SchemaChecker.js';
import { ModelCache, withService, type SamplerSourceClient, type ServedSampler } from './models/ModelCache.js';
import { Renewable } from './models/Renewable.js';
import { ServiceWatch } from './models/ServiceWatch.js';
import { ItemStore } from './responses/items.js';
import { positive, startGateway, type GatewayOptions, type ServedGateway } from './startGateway.js';

/** Opens the sampler to serve, and opens it again when the service was started again and no longer knows it. */
export type SamplerOpener = (service: SamplerSourceClient) => PromiseLike<ServedSampler>;

/** Options of {@link serveSampler}. */
export interface ServeOptions extends GatewayOptions {
  /** The name of the model in answers and lists. Default: the base model's. */
  readonly modelName?: string;
  /** Writes and reads conversations. Default: the one recommended for the model. */
  readonly renderer?: Renderer;
  /**
   * Opens checkpoints that callers name as `model`: `tinker://…/sampler_weights/…` or `run@step`, and tells how long
   * contexts are. As a function, the gateway opens and closes the client itself, and opens another one when the service
   * was started again. Default: no checkpoint can be named.
   */
  readonly service?: SamplerSourceClient | (() => SamplerSourceClient | PromiseLike<SamplerSourceClient>);
  /** Most checkpoints kept open. Default 4. */
  readonly maxModels?: number;
  /** Maximum tokens that one request may sample. Default 16,384, and never more than the context has left. */
  readonly maxTokens?: number;
  /** How many tokens prompt and answer may have together. Default: what `service` says; without it, not checked. */
  readonly contextTokens?: number;
  /** Longest prompt that is encoded, in characters. Default 16 per token of the context, at most 786,432. */
  readonly maxPromptChars?: number;
  /** Streams in pieces of this many tokens, each a separate request. Default: streams deliver the finished answer. */
  readonly pieceTokens?: number;
  /** How often an answer that does not fit its JSON schema is sampled again. Default 2. */
  readonly jsonRetries?: number;
  /**
   * Refuse a forced tool call, penalties, an effort and the like with 400. Default false: the answer comes without
   * them, and its header `x-gateway-warning` names them.
   */
  readonly strict?: boolean;
  /** How often to check the service while callers wait, in milliseconds. Default 5,000. */
  readonly checkServiceMs?: number;
}

/**
 * Serves a sampler over HTTP, in the shapes of OpenAI's chat completions, completions and responses and of Anthropic's
 * messages, so that any client of those APIs can talk to a model in training.
 *
 * ```ts
 * const gateway = await serveSampler(sampler);
 * const client = new OpenAI({ baseURL: gateway.baseURL, apiKey: gateway.apiKey });
 * ```
 * Listens on this machine only by default, and always asks for a key. A gateway that must survive a restart of its
 * service opens its sampler itself:
 * ```ts
 * const gateway = await serveSampler((service) => service.createSamplingClient({ baseModel: 'Qwen/Qwen3-8B' }), {
 *   service: () => new ServiceClient(),
 * });
 * ```
 * Rejects with the system's error when the port is taken.
 */
export async function serveSampler(
  sampler: ServedSampler | SamplerOpener,
  options: ServeOptions = {},
): Promise<ServedGateway> {
  const { renderer, jsonRetries = 2, pieceTokens, contextTokens, maxPromptChars, strict = false } = options;
  const maxTokens = positive('maxTokens', options.maxTokens ?? 16_384);
  const limits = { pieceTokens, contextTokens, maxPromptChars, checkServiceMs: options.checkServiceMs };
  for (const [name, value] of Object.entries(limits)) if (value !== undefined) positive(name, value);
  const service = serviceOf(options.service);
  const main = mainOf(sampler, service);
  const checker = new SchemaChecker();
  const watch = new ServiceWatch(async (timeoutMs) => {
    // The service first: a sampler may be opening, which waits for as long as the service is gone.
    const client = await service?.get();
    if (client?.getServerCapabilities !== undefined) return client.getServerCapabilities({ timeoutMs });
    return (await main.get()).getBaseModel({ timeoutMs });
  }, options.checkServiceMs);
  const mainName = options.modelName ?? (await (await main.get()).getBaseModel());
  const models = new ModelCache({
    mainName,
    main,
    service,
    renderer,
    contextTokens,
    maxPromptChars,
    most: positive('maxModels', options.maxModels ?? 4),
    newId: systemUuid,
    watch,
    onSample: (promptTokens, response) => gateway.metrics.sampled(promptTokens, response),
  });
  const gateway = await startGateway({
    gateway: {
      find: (model) => models.find(model),
      mainName,
      maxTokens,
      pieceTokens,
      jsonRetries,
      checkJson: (schema, json) => checker.check(schema, json),
      strict,
      items: new ItemStore(),
      nowMs: () => Date.now(),
      newId: systemUuid,
      onReply: () => undefined,
    },
    names: () => models.names(),
    reachable: () => watch.reachable,
    options,
    close: async () => {
      watch.close();
      await checker.close();
      if (typeof options.service === 'function') await (await service?.opened())?.destroy?.({ status: 'success' });
    },
  });
  return gateway.served;
}

function serviceOf(given: ServeOptions['service']): Renewable<SamplerSourceClient> | undefined {
  if (given === undefined) return undefined;
  let last: SamplerSourceClient | undefined;
  return new Renewable(async () => {
    // The one before waits for its last calls, which end when the service refuses them.
    if (typeof given === 'function') void Promise.resolve(last?.close?.()).catch(() => undefined);
    return (last = typeof given === 'function' ? await given() : given);
  });
}

function mainOf(
  sampler: ServedSampler | SamplerOpener,
  service: Renewable<SamplerSourceClient> | undefined,
): Renewable<ServedSampler> {
  if (typeof sampler !== 'function') return new Renewable(() => Promise.resolve(sampler));
  if (service === undefined) throw new ValidationError('a function that opens the sampler needs the option service');
  return new Renewable(() => withService(service, sampler));
}
