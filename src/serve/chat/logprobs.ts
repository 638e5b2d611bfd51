import type { Tokenizer } from '../../chat/tokenizer/Tokenizer.js';
import type { ChatReply, SampledToken } from '../completion/ChatRequest.js';
import { remembering } from '../completion/remembering.js';
import { sampledTokens } from '../completion/TokenCursor.js';

/** Logprobs as OpenAI writes them, a row per token. */
export function logprobRows(tokens: readonly SampledToken[], tokenizer: Tokenizer): object[] {
  const spelling = remembering((token) => ({
    token: tokenizer.decode([token]),
    bytes: [...tokenizer.decodeBytes([token])],
  }));
  const entry = (id: number, logprob: number): object => {
    const { token, bytes } = spelling(id);
    return { token, logprob, bytes };
  };
  return tokens.map(({ token, logprob, top }) => ({
    ...entry(token, logprob),
    top_logprobs: top.map(([id, value]) => entry(id, value)),
  }));
}

/** Logprobs of what a reply tells, or of every sampled token; null where the service returned none. */
export const logprobsOf = (reply: ChatReply, tokenizer: Tokenizer, everyToken = false): object[] | null =>
  reply.logprobs === undefined
    ? null
    : logprobRows(sampledTokens(reply).slice(0, everyToken ? undefined : reply.told), tokenizer);
