import type { Observable } from 'rxjs';
import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import type { CallOptions } from '../../client/CallOptions.js';
import type { RestClient } from '../../client/RestClient.js';
import type { SamplingClient } from '../../client/SamplingClient.js';
import type { GetServerCapabilitiesResponse } from '../../wire/session.js';
import type { SampleResponse } from '../../wire/sampling.js';
import type { ChatModel } from '../completion/ChatRequest.js';
import { GatewayError } from '../http/GatewayError.js';
import { isLost, lastingSampler, Renewable } from './Renewable.js';
import type { ServiceWatch } from './ServiceWatch.js';
import { isCheckpointPath } from '../../wire/tinkerPath.js';

/** What {@link serveSampler} needs of a sampler. A `SamplingClient` is one. */
export type ServedSampler = Pick<SamplingClient, 'sample' | 'getRenderer' | 'getBaseModel'>;

/** What a gateway needs to open checkpoints. A `ServiceClient` is one. */
export interface SamplerSourceClient {
  /** Makes a sampling client, as `ServiceClient.createSamplingClient` does. */
  createSamplingClient(
    source: { readonly modelPath: string } | { readonly baseModel: string },
  ): PromiseLike<SamplingClient>;
  /** Lists checkpoints, to find the newest. */
  readonly rest: Pick<RestClient, 'listCheckpoints'>;
  /** Tells how long the context of each model is. Without it, set `contextTokens`. */
  getServerCapabilities?(options?: CallOptions): PromiseLike<GetServerCapabilitiesResponse>;
  /** Ends a client that the gateway itself opened, after its last calls. */
  close?(): PromiseLike<void>;
  /** Ends it without waiting for them. */
  destroy?(options: { readonly status: 'success' }): PromiseLike<void>;
}

export interface ModelCacheOptions {
  /** The model that every name but a checkpoint's stands for. */
  readonly mainName: string;
  readonly main: Renewable<ServedSampler>;
  readonly service: Renewable<SamplerSourceClient> | undefined;
  readonly renderer: Renderer | undefined;
  readonly contextTokens: number | undefined;
  readonly maxPromptChars: number | undefined;
  readonly most: number;
  readonly newId: () => string;
  readonly watch: ServiceWatch;
  readonly onSample: (promptTokens: number, response: SampleResponse) => void;
}

const RUN_AT_STEP = /^([^/@]+)@(\d+)$/;
/** Encoding this many characters takes about 50 ms, and a context of 131,072 tokens seldom has more. */
const MOST_PROMPT_CHARS = 786_432;
/** No text has this many characters per token. */
const CHARS_PER_TOKEN = 16;

/**
 * The models a gateway serves, by the name a caller gives. A checkpoint is opened when it is first asked for and kept;
 * beyond `most` of them, the one that was used longest ago is let go.
 */
export class ModelCache {
  /** In order of use, the latest last. */
  readonly #open = new Map<string, Promise<ChatModel>>();
  readonly #main: Renewable<ChatModel>;

  constructor(private readonly options: ModelCacheOptions) {
    this.#main = new Renewable(() => this.#chatModel(options.main));
  }

  /** The names that can be listed: the main model, and the checkpoints that are open. */
  names(): string[] {
    return [this.options.mainName, ...this.#open.keys()];
  }

  /** @throws GatewayError 404 for a name that stands for no model */
  find(name: string | undefined): Promise<ChatModel> {
    const { mainName, most } = this.options;
    if (name === undefined || name === mainName || name === 'default') return this.#main.get();
    if (!isCheckpointPath(name) && !RUN_AT_STEP.test(name)) {
      return Promise.reject(
        new GatewayError(404, `there is no model ${name}; this gateway serves ${mainName}`, 'model'),
      );
    }
    const known = this.#open.get(name);
    this.#open.delete(name);
    const opened = known ?? this.#openCheckpoint(name);
    this.#open.set(name, opened);
    if (known === undefined) opened.catch(() => this.#open.delete(name));
    for (const oldest of this.#open.keys()) {
      if (this.#open.size <= most) break;
      this.#open.delete(oldest);
    }
    return opened;
  }

  async #openCheckpoint(name: string): Promise<ChatModel> {
    const { service } = this.options;
    if (service === undefined)
      throw new GatewayError(404, 'this gateway serves one sampler and opens no checkpoints', 'model');
    return this.#chatModel(
      new Renewable(() =>
        withService(service, async (client) =>
          client.createSamplingClient({
            modelPath: isCheckpointPath(name) ? name : await pathOf(client, name),
          }),
        ),
      ),
    );
  }

  async #chatModel(samplers: Renewable<ServedSampler>): Promise<ChatModel> {
    const { watch, onSample, newId, maxPromptChars } = this.options;
    const sampler = await samplers.get();
    const contextTokens = this.options.contextTokens ?? (await this.#contextOf(sampler));
    const guard = (work: Observable<SampleResponse>, promptTokens: number): Observable<SampleResponse> =>
      watch.guard(work, (response) => onSample(promptTokens, response));
    return {
      renderer: this.options.renderer ?? (await sampler.getRenderer()),
      newId,
      ...(contextTokens === undefined ? {} : { contextTokens }),
      maxPromptChars: maxPromptChars ?? Math.min(MOST_PROMPT_CHARS, (contextTokens ?? Infinity) * CHARS_PER_TOKEN),
      sampler: lastingSampler(sampler, samplers, guard),
    };
  }

  /** How long the context of a model is, if the service says it. */
  async #contextOf(sampler: ServedSampler): Promise<number | undefined> {
    const service = await this.options.service?.get();
    if (service?.getServerCapabilities === undefined) return undefined;
    const [baseModel, { supportedModels }] = await Promise.all([
      sampler.getBaseModel(),
      service.getServerCapabilities(),
    ]);
    return supportedModels.find(({ modelName }) => modelName === baseModel)?.maxContextLength;
  }
}

/** Opens something through the service; one that was started again needs a new session first. */
export async function withService<T>(
  services: Renewable<SamplerSourceClient>,
  open: (service: SamplerSourceClient) => PromiseLike<T>,
): Promise<T> {
  const service = await services.get();
  try {
    return await open(service);
  } catch (error) {
    if (!isLost(error)) throw error;
    const next = await services.renew(service);
    if (next === service) throw error;
    return open(next);
  }
}

/** `run@20` is the sampler's checkpoint of that run whose name ends in that number. */
async function pathOf(service: SamplerSourceClient, name: string): Promise<string> {
  const [, run = '', step = ''] = RUN_AT_STEP.exec(name)!;
  const { checkpoints } = await service.rest.listCheckpoints(run);
  const found = checkpoints.find(
    ({ tinkerPath }) =>
      tinkerPath.includes('/sampler_weights/') && Number(/(\d+)$/.exec(tinkerPath)?.[1]) === Number(step),
  );
  if (found === undefined) throw new GatewayError(404, `run ${run} has no sampler weights of step ${step}`, 'model');
  return found.tinkerPath;
}
