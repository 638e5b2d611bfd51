import { checkBytes, rankedTokens, readRankFile } from './rankFile.js';
import { loadEngine } from './tiktokenEngine.js';
import { TiktokenTokenizer } from './TiktokenTokenizer.js';
import { chatTemplateOf, tokenName, type TokenizerConfigJson } from '../tokenizerFiles.js';

/** Revisions the service's SDK pins: the repositories change their tokenizers without a new name. */
export const KIMI_REVISIONS: Readonly<Record<string, string>> = {
  'moonshotai/Kimi-K2-Thinking': '612681931a8c906ddb349f8ad0f582cb552189cd',
  'moonshotai/Kimi-K2.5': '4d01dfe0332d63057c186e0b262165819efb6611',
  'moonshotai/Kimi-K2.6': 'b5aabbfb20227ed42becbf5541dbffd213942c58',
  'moonshotai/Kimi-K3': 'f831ab66814297da540d832a5235f8e904f29d06',
};

const SPECIALS = 256;
const CONTRACTION = `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`;
const UPPER = String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`;
const LOWER = String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`;

/** Runs of Han, words that contain none, up to three digits, punctuation, white space. */
const KIMI_PATTERN = [
  String.raw`[\p{Han}]+`,
  String.raw`[^\r\n\p{L}\p{N}]?${UPPER}*${LOWER}+${CONTRACTION}`,
  String.raw`[^\r\n\p{L}\p{N}]?${UPPER}+${LOWER}*${CONTRACTION}`,
  String.raw`\p{N}{1,3}`,
  String.raw` ?[^\s\p{L}\p{N}]+[\r\n]*`,
  String.raw`\s*[\r\n]+`,
  String.raw`\s+(?!\S)`,
  String.raw`\s+`,
].join('|');

/** The files of a Kimi repository that make its tokenizer. */
export interface KimiFiles {
  /** tiktoken.model */
  readonly ranks: string;
  /** The content of `tokenizer_config.json`. */
  readonly config: TokenizerConfigJson;
  /** The chat template. Default: the one in `config`, if any. */
  readonly chatTemplate?: string;
}

/**
 * Kimi's tokenizer, which comes as a rank file with Python code instead of a tokenizer.json.
 *
 * 256 special tokens follow the ranks; those that the config does not name are `<|reserved_token_N|>`. Rejects with a `TokenizerError` for a
 * broken rank file, or if the optional package `tiktoken` is missing.
 */
export async function kimiTokenizer(id: string, files: KimiFiles): Promise<TiktokenTokenizer> {
  const { config } = files;
  const ranks = readRankFile(files.ranks, 'tiktoken.model');
  checkBytes(ranks, 'tiktoken.model');
  const first = rankedTokens(ranks).length;
  const specials = new Map<string, number>();
  for (let index = 0; index < SPECIALS; index++) {
    const named = config.added_tokens_decoder?.[String(first + index)]?.content;
    specials.set(named ?? `<|reserved_token_${index}|>`, first + index);
  }
  const eosTokenId = specials.get(tokenName(config.eos_token) ?? '');
  const bosTokenId = specials.get(tokenName(config.bos_token) ?? '');
  const chatTemplate = chatTemplateOf(files);
  const fields = {
    ranks,
    pattern: KIMI_PATTERN,
    specials,
    ...(eosTokenId === undefined ? {} : { eosTokenId }),
    ...(bosTokenId === undefined ? {} : { bosTokenId }),
    ...(chatTemplate === undefined ? {} : { chatTemplate }),
  };
  return new TiktokenTokenizer(id, fields, await loadEngine(id));
}
