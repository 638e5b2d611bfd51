import type { ModelFields } from '../ModelFields.js';

const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const REST = '| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
const QWEN2 = `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}${REST}`;
const LLAMA3 = `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}${REST}`;

const byteLevel = (useRegex: boolean) => ({
  type: 'ByteLevel',
  add_prefix_space: false,
  trim_offsets: true,
  use_regex: useRegex,
});
const split = (pattern: string) => ({
  type: 'Split',
  pattern: { Regex: pattern },
  behavior: 'Isolated',
  invert: false,
});
const sequence = (...pretokenizers: readonly object[]) => ({ type: 'Sequence', pretokenizers });

/** How text is cut before merging, by `tokenizer.ggml.pre`, as the model's own tokenizer.json has it. */
interface Cutting {
  readonly pre: object;
  readonly normalizer?: object;
  /** A piece that is a token as a whole is not merged. */
  readonly ignoreMerges?: boolean;
}

const gpt2: Cutting = { pre: byteLevel(true) };
const smollm: Cutting = { pre: sequence({ type: 'Digits', individual_digits: true }, byteLevel(true)) };
const qwen2: Cutting = { pre: sequence(split(QWEN2), byteLevel(false)), normalizer: { type: 'NFC' } };
const llama3: Cutting = { pre: sequence(split(LLAMA3), byteLevel(false)), ignoreMerges: true };
const CUTTINGS: Readonly<Record<string, Cutting>> = {
  ...{ 'gpt-2': gpt2, smollm, qwen2, 'deepseek-r1-qwen': qwen2 },
  ...{ 'llama-bpe': llama3, 'llama-v3': llama3, llama3 },
};

/** The name of how a tokenizer.json cuts text; undefined for one that is not known here. */
export function cuttingOf(tokenizer: { readonly pre_tokenizer?: unknown }): string | undefined {
  const form = (pre: unknown) => JSON.stringify(pre).replaceAll('"trim_offsets":true', '"trim_offsets":false');
  return Object.entries(CUTTINGS).find(([, { pre }]) => form(pre) === form(tokenizer.pre_tokenizer))?.[0];
}

const CONTROL = 3;
const USER_DEFINED = 4;

/**
 * The tokenizer in a GGUF file's metadata, as the files that Hugging Face has for it.
 *
 * @throws Error naming the field, if it is not a byte-level BPE of a kind that is known here
 */
export function readGgufTokenizer(fields: ModelFields): Readonly<Record<string, string>> {
  const field = (name: string) => `tokenizer.ggml.${name}`;
  if (fields.get(field('model')) !== 'gpt2')
    throw fields.wrong(
      field('model'),
      '"gpt2". Use the folder of the model in safetensors, which has its tokenizer.json',
    );
  const cutting = CUTTINGS[String(fields.get(field('pre')))];
  if (cutting === undefined) throw fields.wrong(field('pre'), `one of ${Object.keys(CUTTINGS).join(', ')}`);
  const tokens = listOf<string>(fields, field('tokens'), 'string');
  const merges = listOf<string>(fields, field('merges'), 'string');
  const types = listOf<number>(fields, field('token_type'), 'number');
  const special = (name: string): string | undefined => tokens[Number(fields.get(field(`${name}_token_id`)) ?? -1)];
  const [begin, end, pad, unknown] = ['bos', 'eos', 'padding', 'unknown'].map(special);
  const addsBegin = fields.get(field('add_bos_token')) === true && begin !== undefined;
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false };
  const added = tokens.flatMap((content, id) =>
    types[id] === CONTROL || types[id] === USER_DEFINED
      ? [{ id, content, ...flags, special: types[id] === CONTROL }]
      : [],
  );
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: cutting.normalizer ?? null,
    pre_tokenizer: cutting.pre,
    post_processor: addsBegin ? beginning(begin, tokens.indexOf(begin)) : null,
    decoder: byteLevel(true),
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: cutting.ignoreMerges ?? false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges,
    },
  };
  const template = fields.get('tokenizer.chat_template');
  const config = {
    tokenizer_class: 'PreTrainedTokenizerFast',
    bos_token: begin,
    eos_token: end,
    pad_token: pad ?? end,
    unk_token: unknown,
    clean_up_tokenization_spaces: false,
    model_max_length: fields.get(`${String(fields.get('general.architecture'))}.context_length`),
    chat_template: typeof template === 'string' ? template : undefined,
  };
  return { 'tokenizer.json': JSON.stringify(tokenizer), 'tokenizer_config.json': JSON.stringify(config) };
}

function listOf<T extends string | number>(
  fields: ModelFields,
  field: string,
  type: 'string' | 'number',
): readonly T[] {
  const list = fields.get(field);
  if (Array.isArray(list) && list.every((value) => typeof value === type)) return list as readonly T[];
  throw fields.wrong(field, `a list of ${type}s`);
}

/** Puts the first token before a text that is encoded with special tokens. */
const beginning = (token: string, id: number) => {
  const first = { SpecialToken: { id: token, type_id: 0 } };
  const text = (sequenceId: string, typeId: number) => ({ Sequence: { id: sequenceId, type_id: typeId } });
  return {
    type: 'TemplateProcessing',
    single: [first, text('A', 0)],
    pair: [first, text('A', 0), { SpecialToken: { id: token, type_id: 1 } }, text('B', 1)],
    special_tokens: { [token]: { id: token, ids: [id], tokens: [token] } },
  };
};
