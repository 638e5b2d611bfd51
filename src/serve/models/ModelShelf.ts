import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import type { RestClient } from '../../client/RestClient.js';
import type { SamplingClient } from '../../client/SamplingClient.js';
import { GatewayError } from '../http/GatewayError.js';
import type { ChatModel } from '../completion/ChatRequest.js';

/** What a gateway needs to open checkpoints. A `ServiceClient` is one. */
export interface SamplerSourceClient {
  /** Makes a sampling client, as `ServiceClient.createSamplingClient` does. */
  createSamplingClient(
    source: { readonly modelPath: string } | { readonly baseModel: string },
  ): PromiseLike<SamplingClient>;
  /** Lists checkpoints, to find the newest. */
  readonly rest: Pick<RestClient, 'listCheckpoints'>;
}

export interface ModelShelfOptions {
  /** The model that every name but a checkpoint's stands for. */
  readonly main: { readonly name: string; readonly open: () => Promise<ChatModel> };
  readonly service: SamplerSourceClient | undefined;
  readonly renderer: Renderer | undefined;
  readonly most: number;
  readonly newId: () => string;
}

const RUN_AT_STEP = /^([^/@]+)@(\d+)$/;

/**
 * The models a gateway serves, by the name a caller gives. A checkpoint is opened when it is first asked for and kept;
 * beyond `most` of them, the one that was used longest ago is let go.
 */
export class ModelShelf {
  readonly #options: ModelShelfOptions;
  /** In order of use, the latest last. */
  readonly #open = new Map<string, Promise<ChatModel>>();
  #main: Promise<ChatModel> | undefined;

  constructor(options: ModelShelfOptions) {
    this.#options = options;
  }

  /** The names that can be listed: the main model, and the checkpoints that are open. */
  names(): string[] {
    return [this.#options.main.name, ...this.#open.keys()];
  }

  /** @throws GatewayError 404 for a name that stands for no model */
  find(name: string | undefined): Promise<ChatModel> {
    const { main } = this.#options;
    if (name === undefined || name === main.name || name === 'default') {
      if (this.#main === undefined) {
        this.#main = main.open();
        // A failure is not kept: the next caller tries again.
        this.#main.catch(() => (this.#main = undefined));
      }
      return this.#main;
    }
    if (!name.startsWith('tinker://') && !RUN_AT_STEP.test(name)) {
      return Promise.reject(
        new GatewayError(404, `there is no model ${name}; this gateway serves ${main.name}`, 'model'),
      );
    }
    const known = this.#open.get(name);
    this.#open.delete(name);
    const opened = known ?? this.#openCheckpoint(name);
    this.#open.set(name, opened);
    if (known === undefined) opened.catch(() => this.#open.delete(name));
    for (const oldest of this.#open.keys()) {
      if (this.#open.size <= this.#options.most) break;
      this.#open.delete(oldest);
    }
    return opened;
  }

  async #openCheckpoint(name: string): Promise<ChatModel> {
    const { service, renderer, newId } = this.#options;
    if (service === undefined)
      throw new GatewayError(404, 'this gateway serves one sampler and opens no checkpoints', 'model');
    const modelPath = name.startsWith('tinker://') ? name : await this.#pathOf(service, name);
    const sampler = await service.createSamplingClient({ modelPath });
    return { sampler, renderer: renderer ?? (await sampler.getRenderer()), newId };
  }

  /** `run@20` is the sampler's checkpoint of that run whose name ends in that number. */
  async #pathOf(service: SamplerSourceClient, name: string): Promise<string> {
    const [, run = '', step = ''] = RUN_AT_STEP.exec(name)!;
    const { checkpoints } = await service.rest.listCheckpoints(run);
    const found = checkpoints.find(
      ({ tinkerPath }) =>
        tinkerPath.includes('/sampler_weights/') && Number(/(\d+)$/.exec(tinkerPath)?.[1]) === Number(step),
    );
    if (found === undefined) throw new GatewayError(404, `run ${run} has no sampler weights of step ${step}`, 'model');
    return found.tinkerPath;
  }
}
