import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { runCustomLoss } from './training/customLoss.js';
import { EngineCancelledError } from './errors.js';
import { loadModel, type LoadProgress } from './loadModel.js';
import { MODEL_SHAPES, modelInfo } from './model/shapes.js';
import type { OpenedModel } from '../weights/OpenedModel.js';
import type {
  AdamOptions,
  BaseModelInfo,
  EngineDatum,
  ForwardBackwardResult,
  LoraOptions,
  LossConfig,
  LossFunction,
  ModelState,
  SampleRequest,
  SampleResult,
} from './types.js';
import { plainDatum, plainTensor } from './thread/plain.js';
import { WorkerLink } from './thread/workerLink.js';

export interface EngineOptions {
  /** Whether an idle engine keeps the process alive. Default false. */
  readonly keepAlive?: boolean;
  /** Language models to load beside the byte models; they may be closed once the engine has started. Default none. */
  readonly models?: readonly OpenedModel[] | undefined;
  /** Threads that compute. Results are the same for any number. Default 1, or with `models` as many as there are cores, up to 8. */
  readonly threads?: number | undefined;
  /** The most memory for weights and work, in bytes. Default 2 GiB, or with `models` 4 GiB, which is also the most. */
  readonly memoryBytes?: number | undefined;
  /** Bytes of activations that a training pass keeps; layers beyond are computed again. Default 192 MiB. */
  readonly activationBytes?: number | undefined;
  /** Called for every tensor of `models` that was loaded. */
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined;
}

export interface CreateModelOptions {
  /** The caller's name for the model; must be free. */
  readonly modelId: string;
  readonly baseModel: string;
  readonly lora: LoraOptions;
  /** Only `adamw`; another is refused as a user error. */
  readonly optimizer?: string | undefined;
}

/** Where a sampler takes its weights from: a copy is made at the call, later training does not change it. */
export type CreateSamplerOptions = { readonly samplerId: string } & (
  | { readonly baseModel: string }
  | { readonly modelId: string }
  | { readonly state: ModelState }
);

export interface ForwardBackwardOptions {
  /** Compute the loss and the logprobs, leave the gradients alone. */
  readonly forwardOnly?: boolean;
}

const MAX_THREADS = 8;

/** Both src/local/engine and dist/local/engine are three folders below the package, where the weights are. */
const weightsUrl = (model: string) =>
  new URL(`../../../assets/${model.replace('/', '-')}.safetensors`, import.meta.url);

/**
 * The engine as the rest of the service sees it. Every method returns a promise that rejects with an
 * `EngineUserError` if the caller is at fault, or an {@link EngineClosedError} once the engine is closed.
 * Calls on one model run in the order they were made; samples run beside them. All work is done in worker threads.
 */
export class Engine {
  readonly #link: WorkerLink;
  readonly #loaded: readonly BaseModelInfo[];
  /** The last call of each model: the next one waits for it. */
  readonly #turns = new Map<string, Promise<unknown>>();

  private constructor(link: WorkerLink, loaded: readonly BaseModelInfo[]) {
    this.#link = link;
    this.#loaded = loaded;
  }

  /** Starts the threads and loads the base models. Rejects where one does not fit into memory, before it is read. */
  static async start({
    keepAlive = false,
    models = [],
    threads = models.length === 0 ? 1 : Math.min(availableParallelism(), MAX_THREADS),
    memoryBytes = models.length === 0 ? undefined : 2 ** 32,
    activationBytes,
    onProgress = () => {},
  }: EngineOptions = {}): Promise<Engine> {
    if (!Number.isInteger(threads) || threads < 1)
      throw new RangeError(`threads must be an integer ≥ 1, got ${threads}`);
    const files = MODEL_SHAPES.map(async ({ name }) => [name, await readFile(weightsUrl(name))] as const);
    const weights = Object.fromEntries(await Promise.all(files));
    const link = await WorkerLink.open({ weights, options: { threads, memoryBytes, activationBytes } }, keepAlive);
    try {
      for (const model of models) await loadModel(link, model, onProgress);
    } catch (error) {
      await link.close();
      throw error;
    }
    return new Engine(
      link,
      models.map(({ shape }) => modelInfo(shape)),
    );
  }

  /** Why nothing can run any more: the thread has ended or was closed. Undefined while all is well. */
  get failure(): Error | undefined {
    return this.#link.failure;
  }

  /** The language models that were loaded, then the byte models. */
  get baseModels(): readonly BaseModelInfo[] {
    return [...this.#loaded, ...this.#link.baseModels];
  }

  createModel({ modelId, baseModel, lora, optimizer }: CreateModelOptions): Promise<void> {
    return this.#inTurn(modelId, () => this.#link.call<void>('createModel', [modelId, baseModel, lora, optimizer]));
  }

  /**
   * Gradients add up over calls until {@link optimStep}. `loss` is a name, or a function of each datum's target
   * logprobs that is run on this thread between a forward and a backward pass; if it throws, nothing was gathered.
   */
  forwardBackward(
    modelId: string,
    data: readonly EngineDatum[],
    loss: string | LossFunction,
    config: LossConfig = {},
    { forwardOnly = false }: ForwardBackwardOptions = {},
  ): Promise<ForwardBackwardResult> {
    const plain = data.map(plainDatum);
    return this.#inTurn(modelId, () =>
      typeof loss === 'string'
        ? this.#link.call('forwardBackward', [modelId, plain, { name: loss, config }, forwardOnly])
        : runCustomLoss(plain, loss, forwardOnly, (source, onlyForward) =>
            this.#link.call('forwardBackward', [modelId, plain, source, onlyForward]),
          ),
    );
  }

  /**
   * One AdamW step on the gathered gradients, which are then dropped; without any, nothing changes. Metrics:
   * `unclipped_grad_l2:mean`, the global gradient norm before clipping.
   */
  optimStep(modelId: string, adam: AdamOptions = {}): Promise<{ readonly metrics: Readonly<Record<string, number>> }> {
    return this.#inTurn(modelId, () => this.#link.call('optimStep', [modelId, adam]));
  }

  /** A copy of the state, taken in turn. `optimizer: false` leaves the moments out. */
  exportState(modelId: string, { optimizer = true }: { readonly optimizer?: boolean } = {}): Promise<ModelState> {
    return this.#inTurn(modelId, () => this.#link.call('exportState', [modelId, optimizer]));
  }

  /** Replaces weights; with `optimizer` also moments and step, which otherwise start from zero. Drops gathered gradients. */
  loadState(
    modelId: string,
    state: ModelState,
    { optimizer = true }: { readonly optimizer?: boolean } = {},
  ): Promise<void> {
    return this.#inTurn(modelId, () => this.#link.call<void>('loadState', [modelId, state, optimizer]));
  }

  /** Made from a model, it holds the weights as they are when the model's earlier calls have run. */
  createSampler({ samplerId, ...source }: CreateSamplerOptions): Promise<void> {
    const create = () => this.#link.call<void>('createSampler', [samplerId, source]);
    return 'modelId' in source ? this.#inTurn(source.modelId, create) : create();
  }

  /** Aborting `signal` ends a queued or running sample with an {@link EngineCancelledError}. */
  async sample(
    samplerId: string,
    request: SampleRequest,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<SampleResult> {
    if (signal?.aborted === true) throw new EngineCancelledError('the sample was cancelled');
    const { targetPromptLogprobs: targets } = request;
    const plain = targets === undefined ? request : { ...request, targetPromptLogprobs: plainTensor(targets) };
    const { result, cancel } = this.#link.start<SampleResult>('sample', [samplerId, plain]);
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      return await result;
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  /** Forgets a model once its earlier calls have run; unknown ids are fine. */
  disposeModel(modelId: string): Promise<void> {
    return this.#inTurn(modelId, () => this.#link.call<void>('disposeModel', [modelId]));
  }

  /** Forgets a sampler; pending samples still finish. */
  disposeSampler(samplerId: string): Promise<void> {
    return this.#link.call<void>('disposeSampler', [samplerId]);
  }

  /** Ends the thread; what was waiting rejects with an {@link EngineClosedError}. Safe to call twice. */
  close(): Promise<void> {
    return this.#link.close();
  }

  #inTurn<A>(modelId: string, run: () => Promise<A>): Promise<A> {
    const before = this.#turns.get(modelId) ?? Promise.resolve();
    const turn = before.then(run, run);
    this.#turns.set(modelId, turn);
    const clear = () => {
      if (this.#turns.get(modelId) === turn) this.#turns.delete(modelId);
    };
    turn.then(clear, clear);
    return turn;
  }
}
