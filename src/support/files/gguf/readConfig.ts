import { architectureOf, ModelFields } from '../ModelFields.js';
import type { GgufFile } from './GgufFile.js';

const CLASSES = { llama: 'LlamaForCausalLM', qwen2: 'Qwen2ForCausalLM', qwen3: 'Qwen3ForCausalLM' } as const;

/**
 * The metadata of a GGUF file as the `config.json` that Hugging Face has for the model.
 *
 * @throws Error naming a field that is missing or not supported
 */
export async function readGgufConfig(file: GgufFile): Promise<Readonly<Record<string, unknown>>> {
  const fields = new ModelFields(file.path, (field) => file.header.metadata.get(field));
  const architecture = architectureOf(fields, 'general.architecture');
  const key = (field: string) => `${architecture}.${field}`;
  const { tensors } = file.header;
  const embedding = tensors.get('token_embd.weight');
  if (embedding === undefined) throw new Error(`${file.path} has no tensor token_embd.weight`);
  const heads = fields.count(key('attention.head_count'));
  const width = fields.count(key('embedding_length'));
  const headWidth = fields.count(key('attention.key_length'), width / heads);
  const base = fields.positive(key('rope.freq_base'), 10_000);
  fields.refuse(key('expert_count'), (value) => value === 0);
  fields.refuse(key('rope.scaling.type'), (value) => value === 'none');
  fields.refuse(key('attention.value_length'), (value) => value === headWidth);
  fields.refuse(key('rope.dimension_count'), (value) => value === headWidth);
  const token = (kind: string) => fields.get(`tokenizer.ggml.${kind}_token_id`);
  const ends = [...new Set(['eos', 'eot', 'eom'].map(token).filter((id) => id !== undefined))];
  return {
    architectures: [CLASSES[architecture]],
    model_type: architecture,
    hidden_act: 'silu',
    hidden_size: width,
    intermediate_size: fields.count(key('feed_forward_length')),
    num_hidden_layers: fields.count(key('block_count')),
    num_attention_heads: heads,
    num_key_value_heads: fields.count(key('attention.head_count_kv'), heads),
    head_dim: headWidth,
    vocab_size: embedding.shape[0],
    max_position_embeddings: fields.count(key('context_length')),
    rms_norm_eps: fields.positive(key('attention.layer_norm_rms_epsilon')),
    rope_theta: base,
    rope_scaling: await ropeScaling(file, headWidth, base),
    tie_word_embeddings: !tensors.has('output.weight'),
    bos_token_id: token('bos'),
    eos_token_id: ends.length === 1 ? ends[0] : ends,
  };
}

/** The tensor with one factor per rotary frequency. */
export const ROPE_FREQUENCIES = 'rope_freqs.weight';
const LLAMA3 = { low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 8192 };

/** `rope_scaling` of type `llama3`. */
export type Llama3Scaling = typeof LLAMA3 & { readonly factor: number };

/**
 * GGUF keeps Llama 3's stretching of the rotary frequencies as one factor per frequency. Every Llama 3 has the settings above, and a factor
 * that is the greatest of them. @throws Error if the factors are others
 */
async function ropeScaling(file: GgufFile, headWidth: number, base: number): Promise<object | null> {
  const place = file.header.tensors.get(ROPE_FREQUENCIES);
  if (place === undefined) return null;
  const factors = await file.values(ROPE_FREQUENCIES, place);
  const factor = factors.reduce((most, value) => Math.max(most, value), 1);
  const scaling = { rope_type: 'llama3', factor, ...LLAMA3 };
  ropeFactors(scaling, headWidth, base).forEach((expected, i) => {
    if (!(Math.abs(factors[i]! - expected) <= 1e-3 * expected))
      throw new Error(
        `${file.path}: ${ROPE_FREQUENCIES} is not Llama 3's scaling: entry ${i} is ${factors[i]}, not ${expected}`,
      );
  });
  return scaling;
}

/** How much longer the period of each rotary frequency becomes, as GGUF stores it. */
export function ropeFactors(scaling: Llama3Scaling, headWidth: number, base: number): Float32Array {
  const { factor, low_freq_factor: low, high_freq_factor: high, original_max_position_embeddings: context } = scaling;
  return Float32Array.from({ length: headWidth / 2 }, (_, i) => {
    const turns = context / (2 * Math.PI * base ** ((2 * i) / headWidth));
    const smooth = Math.min(1, Math.max(0, (turns - low) / (high - low)));
    return 1 / ((1 - smooth) / factor + smooth);
  });
}
