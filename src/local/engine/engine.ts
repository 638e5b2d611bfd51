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
  | { readonly baseModel: string }
  | { readonly modelId: string }
  | { readonly state: ModelState }
);

export interface ForwardBackwardOptions {
  /** Compute the loss and the logprobs, leave the gradients alone. */
  readonly forwardOnly?: boolean;
}

/**
 * The engine as the rest of the service sees it. Every method returns a promise that rejects with an
 * {@link EngineUserError} where the caller is at fault, or an {@link EngineClosedError} once the engine is closed.
 * Calls on one model run in the order they were made; samples run beside them.
 */
export declare class Engine {
  private constructor();
  /** Starts the worker thread and loads the base models. */
  static start(options?: EngineOptions): Promise<Engine>;
  readonly baseModels: readonly BaseModelInfo[];
  createModel(options: CreateModelOptions): Promise<void>;
  /** Gradients add up over calls until {@link optimStep}. `loss` is a name, or a function run on this thread. */
  forwardBackward(
    modelId: string,
    data: readonly EngineDatum[],
    loss: string | LossFunction,
    config?: LossConfig,
    options?: ForwardBackwardOptions,
  ): Promise<ForwardBackwardResult>;
  /** One AdamW step on the gathered gradients; metrics `unclipped_grad_l2:mean` and so on. */
  optimStep(modelId: string, adam?: AdamOptions): Promise<{ readonly metrics: Readonly<Record<string, number>> }>;
  /** A copy of the state, taken in turn. `optimizer: false` leaves the moments out. */
  exportState(modelId: string, options?: { readonly optimizer?: boolean }): Promise<ModelState>;
  /** Replaces weights, and with `optimizer` also moments and step; drops gathered gradients. */
  loadState(modelId: string, state: ModelState, options?: { readonly optimizer?: boolean }): Promise<void>;
  createSampler(options: CreateSamplerOptions): Promise<void>;
  /** Aborting `signal` ends a queued or running sample with an {@link EngineCancelledError}. */
  sample(samplerId: string, request: SampleRequest, options?: { readonly signal?: AbortSignal }): Promise<SampleResult>;
  disposeModel(modelId: string): Promise<void>;
  disposeSampler(samplerId: string): Promise<void>;
  /** Ends the thread; what was waiting rejects. Safe to call twice. */
  close(): Promise<void>;
}
