import { isRecord } from '../../support/isRecord.js';
import { architectureOf, ModelFields } from '../../support/files/ModelFields.js';
import type { ModelShape, RopeScaling } from '../engine/model/shapes.js';

/** The sizes of a model from its `config.json`. @throws Error naming a field that is missing or unsupported */
export function shapeOfConfig(config: Readonly<Record<string, unknown>>, path: string, name: string): ModelShape {
  const rope = [config['rope_parameters'], config['rope_scaling']].find(isRecord) ?? {};
  const fields = new ModelFields(path, (field) =>
    field.startsWith('rope_scaling.') ? rope[field.slice(13)] : config[field],
  );
  const architecture = architectureOf(fields, 'model_type');
  const off = (value: unknown) => value === false;
  fields.refuse('hidden_act', (value) => value === 'silu');
  fields.refuse('quantization_config', () => false);
  fields.refuse('mlp_bias', off);
  if (architecture !== 'qwen2') fields.refuse('attention_bias', off);
  fields.refuse('use_sliding_window', off);
  fields.refuse('partial_rotary_factor', (value) => value === 1);
  fields.refuse('layer_types', (value) => Array.isArray(value) && value.every((type) => type === 'full_attention'));
  const heads = fields.count('num_attention_heads');
  const width = fields.count('hidden_size');
  return {
    name,
    layers: fields.count('num_hidden_layers'),
    width,
    heads,
    keyValueHeads: fields.count('num_key_value_heads', heads),
    headWidth: fields.count('head_dim', width / heads),
    hidden: fields.count('intermediate_size'),
    vocabulary: fields.count('vocab_size'),
    context: fields.count('max_position_embeddings'),
    ropeBase: fields.positive('rope_theta', (rope['rope_theta'] as number | undefined) ?? 10_000),
    ropeScaling: ropeScaling(fields),
    normEps: fields.positive('rms_norm_eps', 1e-6),
    tiedHead: config['tie_word_embeddings'] === true,
    attentionBias: architecture === 'qwen2',
    queryKeyNorms: architecture === 'qwen3',
  };
}

function ropeScaling(fields: ModelFields): RopeScaling | undefined {
  const field = fields.get('rope_scaling.rope_type') === undefined ? 'rope_scaling.type' : 'rope_scaling.rope_type';
  const type = fields.get(field) ?? 'default';
  if (type === 'default') return undefined;
  if (type !== 'llama3') throw fields.wrong(field, undefined);
  return {
    factor: fields.positive('rope_scaling.factor'),
    lowFrequencyFactor: fields.positive('rope_scaling.low_freq_factor'),
    highFrequencyFactor: fields.positive('rope_scaling.high_freq_factor'),
    originalContext: fields.count('rope_scaling.original_max_position_embeddings'),
  };
}

/** Where sampling ends: `eos_token_id` is one token or several. */
export const endTokensOf = ({ eos_token_id: end }: Readonly<Record<string, unknown>>): readonly number[] =>
  [end].flat().filter((id) => typeof id === 'number');
