// What calls about models and their weights return, as users see it. A test holds each of these types against its codec.
import type { OptimizerConfig } from './optimizer.js';

/** How LoRA adapters are made. At least one of the three parts must be trained. */
export interface LoraConfig {
  /** Rank of the adapters: an integer ≥ 1. */
  readonly rank: number;
  /** Seed of the first weights. Default: the service chooses one. */
  readonly seed?: number;
  /** Whether the unembedding is trained. Default true. */
  readonly trainUnembed: boolean;
  /** Whether the MLP layers are trained. Default true. */
  readonly trainMlp: boolean;
  /** Whether the attention layers are trained. Default true. */
  readonly trainAttn: boolean;
}

/** What the service knows about a model in training. */
export interface GetInfoResponse {
  /** About the model it was created from. */
  readonly modelData: {
    /** The architecture's name. */
    readonly arch?: string;
    /** The base model's name. */
    readonly modelName?: string;
    /** The repository its tokenizer comes from. */
    readonly tokenizerId?: string;
  };
  /** The model's id: its training run. */
  readonly modelId: string;
  /** Its optimizer family. */
  readonly optimizerConfig: OptimizerConfig;
  /** Whether it trains LoRA adapters. */
  readonly isLora?: boolean;
  /** The rank of the adapters. */
  readonly loraRank?: number;
  /** The base model's name. */
  readonly modelName?: string;
}

/** The result of an optimizer step. */
export interface OptimStepResponse {
  /** What the service reports about the step, by name, such as the norm of the gradient. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/** The result of loading weights. */
export interface LoadWeightsResponse {
  /** The path they were loaded from. */
  readonly path?: string;
  /** The model they were loaded into. */
  readonly modelId?: string;
}

/** What saved weights were trained with. */
export interface WeightsInfoResponse {
  /** The model they were trained from. */
  readonly baseModel: string;
  /** The optimizer family. */
  readonly optimizerConfig: OptimizerConfig;
  /** Whether they are LoRA adapters. */
  readonly isLora: boolean;
  /** The rank of the adapters. */
  readonly loraRank?: number;
  /** Whether the unembedding was trained. */
  readonly trainUnembed?: boolean;
  /** Whether the MLP layers were trained. */
  readonly trainMlp?: boolean;
  /** Whether the attention layers were trained. */
  readonly trainAttn?: boolean;
}

/** Where to upload the files of external weights. */
export interface ExternalWeightsUpload {
  /** The upload's id. */
  readonly uploadId: string;
  /** A signed URL for each file name. */
  readonly urls: Readonly<Record<string, string>>;
  /** Until when the URLs are valid: ISO 8601. */
  readonly expires: string;
}

/** What a sampler samples from. */
export interface GetSamplerResponse {
  /** The sampler's id. */
  readonly samplerId: string;
  /** The model its weights were trained from. */
  readonly baseModel: string;
  /** The `tinker://` path of its weights; absent for the base model itself. */
  readonly modelPath?: string;
  /** The tokenizer of the base model, where the service names one: the embedded service does. */
  readonly tokenizerId?: string;
}
