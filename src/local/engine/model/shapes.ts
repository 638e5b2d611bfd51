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
}

export const ROPE_BASE = 10_000;
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

/** Every matrix an adapter can change: seven a layer, then the head. Linear i of layer l is at 7·l + i. */
export function linearShapes(shape: ModelShape): LinearShape[] {
  const { width, hidden, layers } = shape;
  const sizes: readonly (readonly [number, number])[] = [
    [width, width],
    [width, width],
    [width, width],
    [width, width],
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

/** Names and shapes of all base tensors, as a Hugging Face Llama checkpoint has them. */
export function baseTensors(shape: ModelShape): { readonly name: string; readonly shape: readonly number[] }[] {
  const norms = (layer: number) => [
    { name: `model.layers.${layer}.input_layernorm.weight`, shape: [shape.width] },
    { name: `model.layers.${layer}.post_attention_layernorm.weight`, shape: [shape.width] },
  ];
  return [
    { name: 'model.embed_tokens.weight', shape: [shape.vocabulary, shape.width] },
    ...Array.from({ length: shape.layers }, (_, layer) => norms(layer)).flat(),
    { name: 'model.norm.weight', shape: [shape.width] },
    ...linearShapes(shape).map(({ name, inputs, outputs }) => ({ name: `${name}.weight`, shape: [outputs, inputs] })),
  ];
}

export function parameterCount(shape: ModelShape): number {
  return baseTensors(shape).reduce((sum, tensor) => sum + tensor.shape.reduce((a, b) => a * b, 1), 0);
}
