import { architectureOf, ModelFields } from '../support/files/ModelFields.js';
import { cuttingOf } from '../support/files/gguf/readTokenizer.js';
import type { GgufField } from '../support/files/gguf/writeGguf.js';

/** Files of a model as Hugging Face lays them out, parsed. */
export interface ModelFiles {
  readonly config: Readonly<Record<string, unknown>>;
  readonly tokenizer: TokenizerJson;
  readonly tokenizerConfig: Readonly<Record<string, unknown>>;
  readonly chatTemplate: string | undefined;
}

/** tokenizer.json, as far as it is written into a GGUF file. */
export interface TokenizerJson {
  readonly pre_tokenizer?: unknown;
  readonly post_processor?: unknown;
  readonly added_tokens?: readonly { readonly id: number; readonly content: string; readonly special: boolean }[];
  readonly model: {
    readonly vocab: Readonly<Record<string, number>>;
    readonly merges: readonly (string | readonly [string, string])[];
  };
}

const NORMAL = 1;
const CONTROL = 3;
const USER_DEFINED = 4;
const UNUSED = 5;

const u32 = (value: number): GgufField => ({ type: 'u32', value });
const f32 = (value: number): GgufField => ({ type: 'f32', value });
const string = (value: string): GgufField => ({ type: 'string', value });

/** What a GGUF file says about a model: sizes, as llama.cpp names them, and its tokenizer. @throws Error naming a field that does not fit */
export function ggufMetadata(files: ModelFiles, name: string, fileType: number): Map<string, GgufField> {
  const fields = new ModelFields('config.json', (field) => files.config[field]);
  const architecture = architectureOf(fields, 'model_type');
  const heads = fields.count('num_attention_heads');
  const headWidth = fields.count('head_dim', fields.count('hidden_size') / heads);
  const sizes: readonly (readonly [string, GgufField])[] = [
    ['block_count', u32(fields.count('num_hidden_layers'))],
    ['context_length', u32(fields.count('max_position_embeddings'))],
    ['embedding_length', u32(fields.count('hidden_size'))],
    ['feed_forward_length', u32(fields.count('intermediate_size'))],
    ['attention.head_count', u32(heads)],
    ['attention.head_count_kv', u32(fields.count('num_key_value_heads', heads))],
    ['attention.key_length', u32(headWidth)],
    ['attention.value_length', u32(headWidth)],
    ['attention.layer_norm_rms_epsilon', f32(fields.positive('rms_norm_eps', 1e-6))],
    ['rope.dimension_count', u32(headWidth)],
    ['rope.freq_base', f32(ropeOf(files.config).base)],
    ['vocab_size', u32(fields.count('vocab_size'))],
  ];
  return new Map<string, GgufField>([
    ['general.architecture', string(architecture)],
    ['general.name', string(name)],
    ['general.file_type', u32(fileType)],
    ['general.quantization_version', u32(2)],
    ...sizes.map(([key, field]) => [`${architecture}.${key}`, field] as const),
    ...tokenizerFields(files, fields.count('vocab_size')),
  ]);
}

/** `rope_theta` and `rope_scaling` of a config.json, wherever its release of transformers put them. */
export function ropeOf(config: Readonly<Record<string, unknown>>): {
  readonly base: number;
  readonly scaling: Readonly<Record<string, unknown>> | undefined;
} {
  const scaling = (config['rope_parameters'] ?? config['rope_scaling'] ?? undefined) as
    | Readonly<Record<string, unknown>>
    | undefined;
  const base = Number(config['rope_theta'] ?? scaling?.['rope_theta'] ?? 10_000);
  return { base, scaling: scaling?.['rope_type'] === 'llama3' ? scaling : undefined };
}

function tokenizerFields(
  { tokenizer, tokenizerConfig, chatTemplate }: ModelFiles,
  size: number,
): readonly (readonly [string, GgufField])[] {
  const pre = cuttingOf(tokenizer);
  if (pre === undefined) throw new Error('tokenizer.json: its pre_tokenizer is none that GGUF has a name for here');
  const tokens = Array.from({ length: size }, (_, id) => `[PAD${id}]`);
  const types = Array<number>(size).fill(UNUSED);
  const ids = new Map<string, number>();
  const put = (content: string, id: number, type: number) => {
    tokens[id] = content;
    types[id] = type;
    ids.set(content, id);
  };
  for (const [content, id] of Object.entries(tokenizer.model.vocab)) put(content, id, NORMAL);
  for (const { content, id, special } of tokenizer.added_tokens ?? [])
    put(content, id, special ? CONTROL : USER_DEFINED);
  const special = (key: string, field: string): (readonly [string, GgufField])[] => {
    const named = tokenizerConfig[field] as string | { readonly content: string } | null | undefined;
    const id = ids.get(typeof named === 'string' ? named : (named?.content ?? ''));
    return id === undefined ? [] : [[`tokenizer.ggml.${key}_token_id`, u32(id)]];
  };
  const addsBegin = JSON.stringify(tokenizer.post_processor ?? null).includes('"single":[{"SpecialToken"');
  return [
    ['tokenizer.ggml.model', string('gpt2')],
    ['tokenizer.ggml.pre', string(pre)],
    ['tokenizer.ggml.tokens', { type: 'strings', value: tokens }],
    ['tokenizer.ggml.token_type', { type: 'i32s', value: types }],
    [
      'tokenizer.ggml.merges',
      {
        type: 'strings',
        value: tokenizer.model.merges.map((merge) => (typeof merge === 'string' ? merge : merge.join(' '))),
      },
    ],
    ...special('bos', 'bos_token'),
    ...special('eos', 'eos_token'),
    ...special('padding', 'pad_token'),
    ...special('unknown', 'unk_token'),
    ['tokenizer.ggml.add_bos_token', { type: 'bool', value: addsBegin }],
    ...(chatTemplate === undefined ? [] : [['tokenizer.chat_template', string(chatTemplate)] as const]),
  ];
}
