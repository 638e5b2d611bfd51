import type { Tokenizer } from '../../chat/tokenizer/Tokenizer.js';
import type { ChatReply, SampledToken } from '../completion/ChatRequest.js';
import { sampledTokens } from '../completion/TokenCursor.js';

/** Logprobs as OpenAI writes them, a row per token. */
export function logprobRows(tokens: readonly SampledToken[], tokenizer: Tokenizer): object[] {
  const entry = (token: number, logprob: number): object => ({
    token: tokenizer.decode([token]),
    logprob,
    bytes: [...tokenizer.decodeBytes([token])],
  });
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
