/**
 * What goes in and out of the engine: plain objects and typed arrays, so that they can cross a thread boundary.
 * The wire's `TensorData` fits {@link EngineTensor} as it is; nothing here knows HTTP, JSON or protobuf.
 */

/** A dense or CSR tensor. int64 values are held as Int32Array (or Float64Array of safe integers). */
export interface EngineTensor {
  readonly dtype: 'int64' | 'float32';
  readonly data: Float32Array | Int32Array | Float64Array;
  readonly shape: readonly number[];
  readonly sparse?: { readonly crowIndices: Int32Array; readonly colIndices: Int32Array } | undefined;
}

/** One training example: position i of `tokens` predicts row i of the tensors in `inputs`. */
export interface EngineDatum {
  readonly tokens: Int32Array;
  readonly inputs: Readonly<Record<string, EngineTensor>>;
}

/** The losses this engine computes. Others are refused with an {@link EngineUserError} that says why. */
export type LossName = 'cross_entropy' | 'importance_sampling' | 'ppo' | 'cispo' | 'dro' | 'gspo';

/** Loss options as they come from the wire: numbers, or strings if a loss takes them. */
export type LossConfig = Readonly<Record<string, number | string>>;

/** What a loss says about one datum: its value, and the derivative with respect to each target logprob. */
export interface LossResult {
  readonly loss: number;
  /** dLoss/dp, row major, as long as `logprobs`. */
  readonly gradient: Float32Array;
  /** Summed over the datums of a call when the key ends in `:sum`, averaged when it ends in `:mean`. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/**
 * A loss given as a function of the target logprobs of one datum. It runs on the calling thread, between the forward
 * and the backward pass; the model waits for it, so that no optimizer step can come between the two.
 */
export type LossFunction = (
  logprobs: EngineTensor,
  inputs: Readonly<Record<string, EngineTensor>>,
  index: number,
) => LossResult | Promise<LossResult>;

export interface ForwardBackwardResult {
  /** One record a datum, holding `logprobs`: float32, [T] or [T, K] as the targets were. */
  readonly outputs: readonly Readonly<Record<string, EngineTensor>>[];
  /** `loss:sum`, and what a custom loss adds. */
  readonly metrics: Readonly<Record<string, number>>;
}

export interface LoraOptions {
  /** 1 to 256. */
  readonly rank: number;
  /** The same seed gives the same adapter. Default 0. */
  readonly seed?: number | undefined;
  /** Adapt q, k, v and o projections. Default true. */
  readonly trainAttn?: boolean | undefined;
  /** Adapt gate, up and down projections. Default true. */
  readonly trainMlp?: boolean | undefined;
  /** Adapt the output head. Default true. */
  readonly trainUnembed?: boolean | undefined;
}

export type ResolvedLora = { readonly [K in keyof LoraOptions]-?: Exclude<LoraOptions[K], undefined> };

/** As the service's AdamParams; every default is the Python SDK's. */
export interface AdamOptions {
  /** Default 1e-4, ≥ 0. */
  readonly learningRate?: number | undefined;
  /** Default 0.9, in [0, 1). */
  readonly beta1?: number | undefined;
  /** Default 0.95, in [0, 1). */
  readonly beta2?: number | undefined;
  /** Default 1e-12, > 0. */
  readonly eps?: number | undefined;
  /** Decoupled. Default 0, ≥ 0. */
  readonly weightDecay?: number | undefined;
  /** Largest global gradient norm; 0 (default) is off. */
  readonly gradClipNorm?: number | undefined;
}

export interface NamedTensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/**
 * Everything needed to continue training: adapter weights, Adam moments, step count. Gradients gathered but not yet
 * applied are not part of it. Weights are named as in a PEFT adapter file; the moments are the same names under
 * `adam.m.` and `adam.v.`.
 */
export interface ModelState {
  readonly baseModel: string;
  readonly lora: ResolvedLora;
  readonly step: number;
  readonly weights: Readonly<Record<string, NamedTensor>>;
  /** Absent in a state made for sampling. */
  readonly optimizer?: {
    readonly m: Readonly<Record<string, NamedTensor>>;
    readonly v: Readonly<Record<string, NamedTensor>>;
  };
}

export interface BaseModelInfo {
  readonly name: string;
  readonly contextLength: number;
  readonly vocabularySize: number;
  readonly parameters: number;
  readonly layers: number;
  readonly width: number;
}

export interface SampleRequest {
  readonly prompt: Int32Array;
  /** Default 1. */
  readonly numSamples?: number | undefined;
  /** Absent: up to the end of the context. */
  readonly maxTokens?: number | undefined;
  /** Same seed, same prompt, same weights: same samples. Absent: a fresh one. */
  readonly seed?: number | undefined;
  /** Absent: the end token stops; `[]`: nothing does; else text (matched over the decoded bytes) or token ids. */
  readonly stop?: readonly string[] | readonly number[] | undefined;
  /** Default 1; 0 takes the most likely token. */
  readonly temperature?: number | undefined;
  /** Default -1: no limit. */
  readonly topK?: number | undefined;
  /** Default 1. */
  readonly topP?: number | undefined;
  readonly promptLogprobs?: boolean | undefined;
  /** Score only the last n prompt tokens: 1 to length − 1, with `promptLogprobs`. */
  readonly promptLogprobsLastN?: number | undefined;
  readonly topkPromptLogprobs?: number | undefined;
  readonly topkSampleLogprobs?: number | undefined;
  /** Whether logprobs of sampled tokens are those at the temperature. Default false: of temperature 1. */
  readonly scaledLogprobs?: boolean | undefined;
  /** int64 [length − 1, K], dense or CSR, −1 = none: row i is scored at prompt position i + 1. */
  readonly targetPromptLogprobs?: EngineTensor | undefined;
  /** Tokens to draw at every prompt position after the first. */
  readonly promptAltTokensK?: number | undefined;
}

/** Row major; an empty cell is (0, -99999). */
export interface TopkTable {
  readonly tokenIds: Int32Array;
  readonly logprobs: Float32Array;
  readonly k: number;
  readonly length: number;
}

export interface SampledTokens {
  readonly stopReason: 'length' | 'stop';
  /** The stop token, or the tokens of the stop text, included. */
  readonly tokens: Int32Array;
  /** Of the model's own distribution, before temperature, top-k and top-p; with `scaledLogprobs` after the temperature. */
  readonly logprobs: Float32Array;
  readonly topkLogprobs?: TopkTable;
}

export interface SampleResult {
  readonly sequences: readonly SampledTokens[];
  /** As long as the prompt; NaN if nothing was scored (always at 0). */
  readonly promptLogprobs?: Float32Array;
  readonly topkPromptLogprobs?: TopkTable;
  /** float32, same shape and layout as asked; 0 where −1 was asked. */
  readonly targetPromptLogprobs?: EngineTensor;
  readonly promptAltTokens?: { readonly tokens: EngineTensor; readonly logprobs: EngineTensor };
  readonly promptCacheHitTokens: number;
}
