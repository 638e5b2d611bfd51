import type { ChatReply } from '../serve/completion/ChatRequest.js';
import type { ModelInput } from '../wire/modelInput.js';
import type { Finish, ProviderMetadata, ResultContent, Usage } from './types.js';

/** What a reply says, in the AI SDK's parts: reasoning, text, then calls. */
export function toContent({ text, thinking, toolCalls }: ChatReply): ResultContent[] {
  return [
    ...(thinking === '' ? [] : [{ type: 'reasoning', text: thinking } as const]),
    ...(text === '' ? [] : [{ type: 'text', text } as const]),
    ...toolCalls.map(
      (call) => ({ type: 'tool-call', toolCallId: call.id, toolName: call.name, input: call.arguments }) as const,
    ),
  ];
}

export const toFinish = ({ finish, stopReason }: ChatReply): Finish => ({
  unified: finish === 'tool_calls' ? 'tool-calls' : finish,
  raw: stopReason,
});

export const toUsage = ({ promptTokens, cachedTokens, tokens, sampledTokens = tokens.length }: ChatReply): Usage => ({
  inputTokens: {
    total: promptTokens,
    noCache: promptTokens - cachedTokens,
    cacheRead: cachedTokens,
    cacheWrite: undefined,
  },
  outputTokens: { total: sampledTokens, text: undefined, reasoning: undefined },
});

/** Exact ids and logprobs, for those who train on what was sampled. */
export const toMetadata = ({ prompt, tokens, logprobs, stopReason }: ChatReply): ProviderMetadata => ({
  tinker: {
    promptTokens: textOnly(prompt) ? [...prompt.toInts()] : null,
    tokens: [...tokens],
    logprobs: logprobs === undefined ? null : [...logprobs],
    stopReason,
  },
});

/** A prompt without chunks is one that the service did not tell. */
const textOnly = (prompt: ModelInput): boolean =>
  prompt.chunks.length > 0 && prompt.chunks.every(({ type }) => type === 'encoded_text');
