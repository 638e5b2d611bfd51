import { loadEngine, loadO200kBase } from './tiktokenEngine.js';
import { TiktokenTokenizer } from './TiktokenTokenizer.js';

const FIRST = 199_998;
const LAST = 200_057;
const BEGIN_OF_TEXT = 200_028;
const END_OF_TEXT = 199_999;

/** Special tokens that have a use; the other ids in the range are `<|unused_N|>`. */
const NAMES: Readonly<Record<number, string>> = {
  199_998: 'unused',
  [END_OF_TEXT]: 'endoftext',
  200_000: 'message_user',
  200_001: 'message_model',
  200_002: 'message_system',
  200_003: 'message_tool',
  200_004: 'content_text',
  200_005: 'content_image',
  200_006: 'content_model_end_sampling',
  200_008: 'content_thinking',
  200_010: 'end_message',
  200_020: 'content_audio_input',
  200_022: 'content_tool_error',
  200_023: 'audio',
  200_024: 'content_xml',
  [BEGIN_OF_TEXT]: 'begin_of_text',
  200_043: 'audio_end',
  200_049: 'content_invoke_tool_json',
  200_057: 'content_invoke_tool_text',
};

/** Whether an id names a Thinking Machines model, whose tokenizer is in no repository. */
export const isInkling = (id: string): boolean => id.startsWith('thinkingmachines/') || id.startsWith('TML/');

/**
 * The tokenizer of Inkling: o200k_base, which the `tiktoken` package brings along, with Inkling's special tokens.
 *
 * Rejects with a `TokenizerError` where that optional package is missing.
 */
export async function inklingTokenizer(id: string): Promise<TiktokenTokenizer> {
  const [{ bpe_ranks, pat_str }, createEngine] = await Promise.all([loadO200kBase(id), loadEngine(id)]);
  const specials = new Map<string, number>();
  for (let token = FIRST; token <= LAST; token++) specials.set(`<|${NAMES[token] ?? `unused_${token}`}|>`, token);
  const fields = { ranks: bpe_ranks, pattern: pat_str, specials, eosTokenId: END_OF_TEXT, bosTokenId: BEGIN_OF_TEXT };
  return new TiktokenTokenizer(id, fields, createEngine);
}
