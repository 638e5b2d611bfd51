import { readFile } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';
import { EngineCancelledError, EngineClosedError } from './errors.js';
import {
  reviveError,
  type FromWorker,
  type ToWorker,
  type WorkerMethod,
  type WorkerMethods,
  type WorkerSetup,
} from './messages.js';
import { MODEL_SHAPES } from './shapes.js';
import type {
  AdamOptions,
  BaseModelInfo,
  EngineDatum,
  EngineTensor,
  ForwardBackwardResult,
  LoraOptions,
  LossConfig,
  LossFunction,
  ModelState,
  SampleRequest,
  SampleResult,
} from './types.js';

export interface EngineOptions {
  /** Whether an idle engine keeps the process alive. Default false. */
  readonly keepAlive?: boolean;
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
  { readonly baseModel: string } | { readonly modelId: string } | { readonly state: ModelState }
);

export interface ForwardBackwardOptions {
  /** Compute the loss and the logprobs, leave the gradients alone. */
  readonly forwardOnly?: boolean;
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Both src/local/engine and dist/local/engine are three folders below the package, where the weights are. */
const weightsUrl = (model: string) =>
  new URL(`../../../assets/${model.replace('/', '-')}.safetensors`, import.meta.url);

/** The built worker beside this file, or the one that starts from source. */
const workerUrl = () =>
  new URL(import.meta.url.endsWith('.ts') ? './worker.source.mjs' : './worker.js', import.meta.url);

/**
 * The engine as the rest of the service sees it. Every method returns a promise that rejects with an
 * `EngineUserError` where the caller is at fault, or an {@link EngineClosedError} once the engine is closed.
 * Calls on one model run in the order they were made; samples run beside them. All work is done in a worker thread.
 */
export class Engine {
  readonly baseModels: readonly BaseModelInfo[];
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  /** The last call of each model: the next one waits for it. */
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #keepAlive: boolean;
  #nextId = 0;
  #closed: EngineClosedError | undefined;

  private constructor(worker: Worker, baseModels: readonly BaseModelInfo[], keepAlive: boolean) {
    this.#worker = worker;
    this.baseModels = baseModels;
    this.#keepAlive = keepAlive;
    worker.on('message', (message: FromWorker) => this.#receive(message));
    worker.on('error', (cause) => this.#fail(new EngineClosedError('the engine’s thread failed', { cause })));
    worker.on('exit', () => this.#fail(new EngineClosedError('the engine’s thread has ended')));
    this.#rest();
  }

  /** Starts the worker thread and loads the base models. */
  static async start({ keepAlive = false }: EngineOptions = {}): Promise<Engine> {
    const files = await Promise.all(
      MODEL_SHAPES.map(async ({ name }) => [name, await readFile(weightsUrl(name))] as const),
    );
    const workerData: WorkerSetup = { weights: Object.fromEntries(files) };
    const worker = new Worker(workerUrl(), { workerData, name: 'tinker-rx engine' });
    return new Promise((resolve, reject) => {
      worker.once('error', reject);
      worker.once('message', (message: FromWorker) => {
        worker.off('error', reject);
        if (message.type === 'ready') resolve(new Engine(worker, message.baseModels, keepAlive));
        else reject(new Error(`unexpected first message ${message.type}`));
      });
    });
  }

  createModel({ modelId, baseModel, lora, optimizer }: CreateModelOptions): Promise<void> {
    return this.#inTurn(modelId, () => this.#call<void>('createModel', [modelId, baseModel, lora, optimizer]));
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
    if (typeof loss === 'string') {
      const source = { name: loss, config };
      return this.#inTurn(modelId, () => this.#call('forwardBackward', [modelId, plain, source, forwardOnly]));
    }
    return this.#inTurn(modelId, () => this.#customLoss(modelId, plain, loss, forwardOnly));
  }

  /**
   * One AdamW step on the gathered gradients, which are then dropped; without any, nothing changes. Metrics:
   * `unclipped_grad_l2:mean`, the global gradient norm before clipping.
   */
  optimStep(modelId: string, adam: AdamOptions = {}): Promise<{ readonly metrics: Readonly<Record<string, number>> }> {
    return this.#inTurn(modelId, () => this.#call('optimStep', [modelId, adam]));
  }

  /** A copy of the state, taken in turn. `optimizer: false` leaves the moments out. */
  exportState(modelId: string, { optimizer = true }: { readonly optimizer?: boolean } = {}): Promise<ModelState> {
    return this.#inTurn(modelId, () => this.#call('exportState', [modelId, optimizer]));
  }

  /** Replaces weights; with `optimizer` also moments and step, else they start anew. Drops gathered gradients. */
  loadState(
    modelId: string,
    state: ModelState,
    { optimizer = true }: { readonly optimizer?: boolean } = {},
  ): Promise<void> {
    return this.#inTurn(modelId, () => this.#call<void>('loadState', [modelId, state, optimizer]));
  }

  /** Made from a model, it holds the weights as they are when the model's earlier calls have run. */
  createSampler({ samplerId, ...source }: CreateSamplerOptions): Promise<void> {
    const create = () => this.#call<void>('createSampler', [samplerId, source]);
    return 'modelId' in source ? this.#inTurn(source.modelId, create) : create();
  }

  /** Aborting `signal` ends a queued or running sample with an {@link EngineCancelledError}. */
  async sample(
    samplerId: string,
    request: SampleRequest,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<SampleResult> {
    if (signal?.aborted === true) throw new EngineCancelledError('the sample was cancelled');
    const id = this.#nextId;
    const { targetPromptLogprobs: targets } = request;
    const plain = targets === undefined ? request : { ...request, targetPromptLogprobs: plainTensor(targets) };
    const result = this.#call<SampleResult>('sample', [samplerId, plain]);
    if (signal === undefined) return result;
    const cancel = () => this.#send({ type: 'cancel', id });
    signal.addEventListener('abort', cancel, { once: true });
    try {
      return await result;
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  }

  /** Forgets a model once its earlier calls have run; unknown ids are fine. */
  disposeModel(modelId: string): Promise<void> {
    return this.#inTurn(modelId, () => this.#call<void>('disposeModel', [modelId]));
  }

  /** Forgets a sampler; samples under way still finish. */
  disposeSampler(samplerId: string): Promise<void> {
    return this.#call<void>('disposeSampler', [samplerId]);
  }

  /** Ends the thread; what was waiting rejects with an {@link EngineClosedError}. Safe to call twice. */
  async close(): Promise<void> {
    this.#fail(new EngineClosedError('the engine was closed'));
    await this.#worker.terminate();
  }

  /** Forward, the function on each datum, then backward with its derivatives; the model's turn is held throughout. */
  async #customLoss(
    modelId: string,
    data: readonly EngineDatum[],
    loss: LossFunction,
    forwardOnly: boolean,
  ): Promise<ForwardBackwardResult> {
    const nothing = data.map(({ inputs }) => new Float32Array(valueCount(inputs['target_tokens'])));
    const given = (gradients: readonly Float32Array[], losses: readonly number[]) => ({ gradients, losses });
    const forward = await this.#call<ForwardBackwardResult>('forwardBackward', [
      modelId,
      data,
      given(nothing, []),
      true,
    ]);
    const results = await Promise.all(
      data.map(async ({ inputs }, index) => loss(forward.outputs[index]!['logprobs']!, inputs, index)),
    );
    const metrics: Record<string, number> = { 'loss:sum': results.reduce((sum, result) => sum + result.loss, 0) };
    for (const result of results) {
      for (const [key, value] of Object.entries(result.metrics ?? {})) {
        metrics[key] = (metrics[key] ?? 0) + (key.endsWith(':mean') ? value / results.length : value);
      }
    }
    if (forwardOnly) return { outputs: forward.outputs, metrics };
    const source = given(
      results.map(({ gradient }) => gradient),
      results.map((result) => result.loss),
    );
    const { outputs } = await this.#call<ForwardBackwardResult>('forwardBackward', [modelId, data, source, false]);
    return { outputs, metrics };
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

  #call<A>(method: WorkerMethod, args: WorkerMethods[WorkerMethod]): Promise<A> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    const id = this.#nextId++;
    return new Promise<A>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.#worker.ref();
      this.#send({ type: 'call', id, method, args });
    });
  }

  #send(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #receive(message: FromWorker): void {
    if (message.type === 'ready') return;
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    this.#rest();
    if (message.type === 'result') waiting?.resolve(message.value);
    else waiting?.reject(reviveError(message.name, message.message, message.stack));
  }

  /** An idle thread must not keep the process from ending. */
  #rest(): void {
    if (this.#waiting.size === 0 && !this.#keepAlive) this.#worker.unref();
  }

  #fail(error: EngineClosedError): void {
    this.#closed ??= error;
    for (const { reject } of this.#waiting.values()) reject(this.#closed);
    this.#waiting.clear();
  }
}

const valueCount = (tensor: EngineTensor | undefined): number => tensor?.shape.reduce((a, b) => a * b, 1) ?? 0;

/** Class instances lose their accessors when they cross to another thread: take what matters. */
function plainTensor({ dtype, data, shape, sparse }: EngineTensor): EngineTensor {
  const plain = { dtype, data, shape: [...shape] };
  return sparse === undefined
    ? plain
    : { ...plain, sparse: { crowIndices: sparse.crowIndices, colIndices: sparse.colIndices } };
}

function plainDatum({ tokens, inputs }: EngineDatum): EngineDatum {
  return {
    tokens,
    inputs: Object.fromEntries(Object.entries(inputs).map(([name, tensor]) => [name, plainTensor(tensor)])),
  };
}
