import type { BaseModelInfo } from '../types.js';
import { VOCABULARY_SIZE } from './vocabulary.js';

/** The sizes of a base model. Widths are multiples of 4, as the kernels ask. */
export interface ModelShape {
  readonly name: string;
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  /** Width of the gated feed-forward part. */
  readonly hidden: number;
  readonly vocabulary: number;
  readonly context: number;
  /** Heads of keys and values; each serves `heads / keyValueHeads` heads of queries. Default `heads`. */
  readonly keyValueHeads?: number | undefined;
  /** Width of one head. Default `width / heads`. */
  readonly headWidth?: number | undefined;
  /** Default 10,000. */
  readonly ropeBase?: number | undefined;
  /** Llama 3's stretching of the rotary frequencies. Default none. */
  readonly ropeScaling?: RopeScaling | undefined;
  /** Default 1e-5. */
  readonly normEps?: number | undefined;
  /** The head is the embedding (`tie_word_embeddings`). Default false. */
  readonly tiedHead?: boolean | undefined;
  /** Queries, keys and values have a bias, as in Qwen2. Default false. */
  readonly attentionBias?: boolean | undefined;
  /** Each head of queries and keys is normed, as in Qwen3. Default false. */
  readonly queryKeyNorms?: boolean | undefined;
}

/** `rope_scaling` of type `llama3` in a model's `config.json`. */
export interface RopeScaling {
  readonly factor: number;
  readonly lowFrequencyFactor: number;
  readonly highFrequencyFactor: number;
  readonly originalContext: number;
}

export const NORM_EPS = 1e-5;

/** The base models the engine knows, the default first. */
export const MODEL_SHAPES: readonly ModelShape[] = [
  { name: 'tinker-rx/tiny', layers: 2, width: 64, heads: 4, hidden: 160, vocabulary: VOCABULARY_SIZE, context: 2048 },
  { name: 'tinker-rx/small', layers: 3, width: 96, heads: 4, hidden: 240, vocabulary: VOCABULARY_SIZE, context: 2048 },
];

/** The seven matrices of a layer, in the order they are used, with the group a LoRA adapter trains them under. */
export const LAYER_LINEARS = [
  { name: 'self_attn.q_proj', group: 'attn' },
  { name: 'self_attn.k_proj', group: 'attn' },
  { name: 'self_attn.v_proj', group: 'attn' },
  { name: 'self_attn.o_proj', group: 'attn' },
  { name: 'mlp.gate_proj', group: 'mlp' },
  { name: 'mlp.up_proj', group: 'mlp' },
  { name: 'mlp.down_proj', group: 'mlp' },
] as const;

export type LinearGroup = 'attn' | 'mlp' | 'unembed';

/** A matrix of the model, named as in a Hugging Face Llama checkpoint: y = x · weightᵀ, weight [outputs, inputs]. */
export interface LinearShape {
  readonly name: string;
  readonly group: LinearGroup;
  readonly inputs: number;
  readonly outputs: number;
}

/** Width of one head. */
export const headWidthOf = ({ width, heads, headWidth = width / heads }: ModelShape): number => headWidth;

/** Heads of keys and values. */
export const keyValueHeadsOf = ({ heads, keyValueHeads = heads }: ModelShape): number => keyValueHeads;

/** Widths of a row of queries, and of a row of keys or values. */
export const attentionWidths = (shape: ModelShape): { readonly queries: number; readonly keys: number } => ({
  queries: shape.heads * headWidthOf(shape),
  keys: keyValueHeadsOf(shape) * headWidthOf(shape),
});

/** Every matrix an adapter can change: seven a layer, then the head. Linear i of layer l is at 7·l + i. */
export function linearShapes(shape: ModelShape): LinearShape[] {
  const { width, hidden, layers } = shape;
  const { queries, keys } = attentionWidths(shape);
  const sizes: readonly (readonly [inputs: number, outputs: number])[] = [
    [width, queries],
    [width, keys],
    [width, keys],
    [queries, width],
    [width, hidden],
    [width, hidden],
    [hidden, width],
  ];
  const all: LinearShape[] = [];
  for (let layer = 0; layer < layers; layer++) {
    LAYER_LINEARS.forEach(({ name, group }, index) => {
      const [inputs, outputs] = sizes[index]!;
      all.push({ name: `model.layers.${layer}.${name}`, group, inputs, outputs });
    });
  }
  all.push({ name: 'lm_head', group: 'unembed', inputs: width, outputs: shape.vocabulary });
  return all;
}

/** Names and shapes of all base tensors, as a Hugging Face checkpoint has them. A tied head has no tensor. */
export function baseTensors(shape: ModelShape): { readonly name: string; readonly shape: readonly number[] }[] {
  const { queries, keys } = attentionWidths(shape);
  const small = (layer: number) => {
    const at = `model.layers.${layer}`;
    return [
      { name: `${at}.input_layernorm.weight`, shape: [shape.width] },
      { name: `${at}.post_attention_layernorm.weight`, shape: [shape.width] },
      ...(shape.attentionBias === true
        ? [
            { name: `${at}.self_attn.q_proj.bias`, shape: [queries] },
            { name: `${at}.self_attn.k_proj.bias`, shape: [keys] },
            { name: `${at}.self_attn.v_proj.bias`, shape: [keys] },
          ]
        : []),
      ...(shape.queryKeyNorms === true
        ? [
            { name: `${at}.self_attn.q_norm.weight`, shape: [headWidthOf(shape)] },
            { name: `${at}.self_attn.k_norm.weight`, shape: [headWidthOf(shape)] },
          ]
        : []),
    ];
  };
  return [
    { name: 'model.embed_tokens.weight', shape: [shape.vocabulary, shape.width] },
    ...Array.from({ length: shape.layers }, (_, layer) => small(layer)).flat(),
    { name: 'model.norm.weight', shape: [shape.width] },
    ...linearShapes(shape)
      .filter(({ group }) => group !== 'unembed' || shape.tiedHead !== true)
      .map(({ name, inputs, outputs }) => ({ name: `${name}.weight`, shape: [outputs, inputs] })),
  ];
}

export function parameterCount(shape: ModelShape): number {
  return baseTensors(shape).reduce((sum, tensor) => sum + tensor.shape.reduce((a, b) => a * b, 1), 0);
}

/** What users are told of a model. */
export const modelInfo = (shape: ModelShape): BaseModelInfo => ({
  name: shape.name,
  contextLength: shape.context,
  vocabularySize: shape.vocabulary,
  parameters: parameterCount(shape),
  layers: shape.layers,
  width: shape.width,
});
