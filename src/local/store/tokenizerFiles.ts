import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { SPECIAL, SPECIAL_NAMES } from '../engine/model/vocabulary.js';
import { CHARACTER_OF_BYTE } from '../../support/byteAlphabet.js';
import { replaceFile } from '../../support/files/writeAtomically.js';

const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
const added = [...SPECIAL_NAMES].map(([id, content]) => ({ id, content, ...flags }));
const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false };

const tokenizer = () => ({
  version: '1.0',
  truncation: null,
  padding: null,
  added_tokens: added,
  normalizer: null,
  pre_tokenizer: byteLevel,
  post_processor: null,
  decoder: byteLevel,
  model: {
    type: 'BPE',
    dropout: null,
    unk_token: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    byte_fallback: false,
    vocab: Object.fromEntries(CHARACTER_OF_BYTE.map((sign, byte) => [sign, byte])),
    merges: [],
  },
});

const config = {
  tokenizer_class: 'PreTrainedTokenizerFast',
  bos_token: SPECIAL_NAMES.get(SPECIAL.begin),
  eos_token: SPECIAL_NAMES.get(SPECIAL.end),
  pad_token: SPECIAL_NAMES.get(SPECIAL.end),
  clean_up_tokenization_spaces: false,
  model_max_length: 1_000_000,
};

/**
 * Writes the embedded models' tokenizer as `transformers` reads it: an id for each byte, and the special tokens above. Unlike this package's own
 * tokenizer it takes `<|end|>` in a text for the token, as tokenizers of Hugging Face do.
 */
export async function writeTokenizer(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  await replaceFile(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer()));
  await replaceFile(join(folder, 'tokenizer_config.json'), JSON.stringify(config));
  return folder;
}
