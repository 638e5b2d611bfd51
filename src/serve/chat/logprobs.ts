import type { Tokenizer } from '../../chat/tokenizer/Tokenizer.js';
import type { ChatReply } from '../completion/ChatRequest.js';

const EMPTY_CELL = -99_999;

/** Logprobs of a reply as OpenAI writes them, a row per sampled token; null where the service returned none. */
export function logprobsOf({ tokens, logprobs, topkLogprobs }: ChatReply, tokenizer: Tokenizer): object[] | null {
  if (logprobs === undefined) return null;
  const entry = (token: number, logprob: number): object => ({
    token: tokenizer.decode([token]),
    logprob,
    bytes: [...tokenizer.decodeBytes([token])],
  });
  return Array.from(tokens, (token, index) => {
    const top: object[] = [];
    if (topkLogprobs !== undefined) {
      const { k, tokenIds, logprobs: values } = topkLogprobs;
      for (let cell = index * k; cell < (index + 1) * k; cell++) {
        if (values[cell]! > EMPTY_CELL) top.push(entry(tokenIds[cell]!, values[cell]!));
      }
    }
    return { ...entry(token, logprobs[index]!), top_logprobs: top };
  });
}
