import * as t from 'io-ts';
import { DatumCodec, type PreparedDatum } from './datum.js';
import { Finite, NonNegativeInteger, PositiveInteger } from './number.js';
import { AdamParams, OptimizerConfig, OptimizerParams } from './optimizer.js';
import { optional, request, response, withDefault } from './record.js';
import { UserMetadata } from './session.js';
import { TensorResultCodec, type TensorData } from './tensor.js';
import type * as types from './modelTypes.js';

const LOSS_FNS = [
  'cross_entropy',
  'importance_sampling',
  'ppo',
  'cispo',
  'dro',
  'gspo',
  'stable_reinforce',
  'custom',
] as const;
/**
 * The losses of the service. Each reads these tensors from `Datum.lossFnInputs`, one row per position:
 *
 * - `cross_entropy`: `target_tokens`, `weights`
 * - `importance_sampling`: `target_tokens`, `logprobs` (those the tokens were sampled with), `advantages`
 * - `ppo`, `cispo`, `dro`, `gspo`: the same three; options in {@link LossFnConfigs}
 * - `stable_reinforce`: no public source says what it needs
 * - `custom`: `target_tokens` and whatever the loss names; use `forwardBackwardCustom`
 */
export type LossFnType = (typeof LOSS_FNS)[number];
export const LossFnType = t.keyof(
  Object.fromEntries(LOSS_FNS.map((name) => [name, null])) as Record<LossFnType, null>,
  LOSS_FNS.map((name) => `'${name}'`).join(' | '),
);
export const LossFnConfig = t.record(t.string, t.union([Finite, t.string]), 'numbers or strings by name');

/** Bounds of the ratio between the new and the old probability of a token. */
export interface ClipConfig {
  /** The smallest ratio that still counts: 0.8 means 20 % less likely. Default 0.8. */
  readonly clip_low_threshold?: number;
  /** The largest ratio that still counts: 1.2 means 20 % more likely. Default 1.2. */
  readonly clip_high_threshold?: number;
}
/** Options of `ppo`. */
export interface PpoConfig extends ClipConfig {
  /** SkyRL's bound for changes of the value; other services refuse it. Default: the server's. */
  readonly value_clip?: number;
}
/** Options of `dro`. */
export interface DroConfig {
  /** Weight of the quadratic penalty on the change of the logprobs. Default: the server's. */
  readonly beta?: number;
}
/** Options of `custom`; `forwardBackwardCustom` fills them in. */
export interface CustomConfig {
  /** The id of an uploaded loss. */
  readonly loss_id: string;
}
/** The config of each loss. Keys are the protocol's own. */
export interface LossFnConfigs {
  /** Accepts no options. */
  readonly cross_entropy: Readonly<Record<string, never>>;
  /** Accepts no options. */
  readonly importance_sampling: Readonly<Record<string, never>>;
  /** Clip bounds, and SkyRL's `value_clip`. */
  readonly ppo: PpoConfig;
  /** Clip bounds. */
  readonly cispo: ClipConfig;
  /** Clip bounds. */
  readonly gspo: ClipConfig;
  /** The penalty's weight. */
  readonly dro: DroConfig;
  /** No public source says which options it accepts: anything is sent unchanged. */
  readonly stable_reinforce: Readonly<Record<string, number | string>>;
  /** The id of an uploaded loss. */
  readonly custom: CustomConfig;
}
/** The config of any loss: what the known ones take, by name. A key that the loss does not take is refused. */
export type LossFnConfig = Readonly<Record<string, number | string>> & PpoConfig & DroConfig & Partial<CustomConfig>;

const CLIP = ['clip_low_threshold', 'clip_high_threshold'] as const;
/** What the losses take whose config is known; a test compares it with the types. */
export const LOSS_CONFIG_KEYS = {
  cross_entropy: [],
  importance_sampling: [],
  ppo: [...CLIP, 'value_clip'],
  cispo: CLIP,
  gspo: CLIP,
  dro: ['beta'],
  custom: ['loss_id'],
} as const satisfies { readonly [L in LossFnType]?: readonly (keyof LossFnConfigs[L])[] };

export const LoraConfig = request('LoraConfig', {
  rank: PositiveInteger,
  seed: optional(NonNegativeInteger),
  train_unembed: withDefault(t.boolean, true),
  train_mlp: withDefault(t.boolean, true),
  train_attn: withDefault(t.boolean, true),
});
export type LoraConfig = types.LoraConfig;

export const CreateModelRequest = request('CreateModelRequest', {
  session_id: t.string,
  model_seq_id: NonNegativeInteger,
  base_model: t.string,
  user_metadata: optional(UserMetadata),
  lora_config: optional(LoraConfig),
  optimizer_config: withDefault(OptimizerConfig, { type: 'adamw' }),
  type: withDefault(t.literal('create_model'), 'create_model'),
});
export const CreateModelResponse = response('CreateModelResponse', { model_id: t.string });

export const GetInfoRequest = request('GetInfoRequest', {
  model_id: t.string,
  type: withDefault(t.literal('get_info'), 'get_info'),
});
/** Older servers free a model's memory on request. */
export const UnloadModelRequest = request('UnloadModelRequest', {
  model_id: t.string,
  type: withDefault(t.literal('unload_model'), 'unload_model'),
});

const ModelData = response('ModelData', {
  arch: optional(t.string),
  model_name: optional(t.string),
  tokenizer_id: optional(t.string),
});
export const GetInfoResponse = response('GetInfoResponse', {
  model_data: ModelData,
  model_id: t.string,
  optimizer_config: withDefault(OptimizerConfig, { type: 'adamw' }),
  is_lora: optional(t.boolean),
  lora_rank: optional(NonNegativeInteger),
  model_name: optional(t.string),
});
export type GetInfoResponse = types.GetInfoResponse;

const ForwardBackwardInput = request('ForwardBackwardInput', {
  data: t.array(DatumCodec),
  loss_fn: LossFnType,
  loss_fn_config: optional(LossFnConfig),
});
/** The JSON body of forward_backward, for servers that take no protobuf. */
export const ForwardBackwardRequestJson = request('ForwardBackwardRequest', {
  model_id: t.string,
  seq_id: optional(PositiveInteger),
  forward_backward_input: ForwardBackwardInput,
  type: optional(t.literal('forward_backward')),
});
/** The JSON body of forward: such servers have a separate endpoint for it. */
export const ForwardRequestJson = request('ForwardRequest', {
  model_id: t.string,
  seq_id: optional(PositiveInteger),
  forward_input: ForwardBackwardInput,
  type: optional(t.literal('forward')),
});

/** One forward or forward-backward pass, whichever way it travels. */
export interface ForwardBackwardRequest {
  readonly modelId: string;
  readonly seqId: number;
  readonly data: readonly PreparedDatum[];
  readonly lossFn: string;
  readonly lossFnConfig?: LossFnConfig;
  readonly forwardOnly: boolean;
}

/** The result of a forward or forward-backward pass. */
export interface ForwardBackwardOutput {
  /** The service's name for the kind of `lossFnOutputs`, usually `ArrayRecord`. */
  readonly lossFnOutputType: string;
  /** One map of tensors per datum, in the order of the data; `logprobs` is always among them. */
  readonly lossFnOutputs: readonly Readonly<Record<string, TensorData>>[];
  /** Metrics under the server's names; the part after the colon says how the chunks of one call are reduced. */
  readonly metrics: Readonly<Record<string, number>>;
}
export const ForwardBackwardOutputJson = response('ForwardBackwardOutput', {
  loss_fn_output_type: withDefault(t.string, 'ArrayRecord'),
  loss_fn_outputs: t.array(t.record(t.string, TensorResultCodec)),
  metrics: withDefault(t.record(t.string, t.number), {}),
});

export const OptimStepRequest = request('OptimStepRequest', {
  adam_params: optional(AdamParams),
  optimizer_params: optional(OptimizerParams),
  model_id: t.string,
  seq_id: optional(PositiveInteger),
  type: withDefault(t.literal('optim_step'), 'optim_step'),
});
export const OptimStepResponse = response('OptimStepResponse', { metrics: optional(t.record(t.string, t.number)) });
export type OptimStepResponse = types.OptimStepResponse;
