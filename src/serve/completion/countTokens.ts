import type { ChatReply } from './ChatRequest.js';

/** Tokens of replies, with those that were thrown away. A prompt is read once for all replies sampled from it. */
export function countTokens(replies: readonly ChatReply[]): {
  readonly prompt: number;
  readonly cached: number;
  readonly sampled: number;
} {
  const sum = (of: (reply: ChatReply) => number): number => replies.reduce((total, reply) => total + of(reply), 0);
  return {
    prompt: (replies[0]?.promptTokens ?? 0) + sum(({ discarded }) => discarded?.promptTokens ?? 0),
    cached: replies[0]?.cachedTokens ?? 0,
    sampled: sum(({ tokens, discarded }) => tokens.length + (discarded?.sampledTokens ?? 0)),
  };
}
