import type { Message, ToolCall, ToolSpec } from '../../chat/renderers/core/Message.js';
import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import { textOf } from '../../chat/renderers/core/content.js';
import type { Sampleable } from '../../operators/sampling/sampleFrom.js';
import type { ModelInput } from '../../wire/modelInput.js';
import type { SamplingParams, StopReason, TopkLogprobs } from '../../wire/sampling.js';
import { refuseLongPrompt } from './context.js';

/** A sampler that speaks in conversations. */
export interface ChatModel {
  readonly sampler: Sampleable;
  readonly renderer: Renderer;
  /** Names for tool calls whose family gives them none. */
  readonly newId: () => string;
  /** The prompt of a request. Default: what the renderer makes of it. */
  readonly promptOf?: (request: ChatRequest) => ModelInput;
  /** How many tokens prompt and reply may have together. Default: not known. */
  readonly contextTokens?: number;
  /** Most characters of a prompt: encoding more would delay all other requests. Default: any number. */
  readonly maxPromptChars?: number;
}

/** What is asked of a {@link ChatModel}, whichever API it was asked through. */
export interface ChatRequest {
  readonly messages: readonly Message[];
  /** Declared in the family's own words; none if empty. */
  readonly tools?: readonly ToolSpec[];
  /** The renderer says what stops a reply, so `stop` has no place here. */
  readonly samplingParams?: Omit<SamplingParams, 'stop'>;
  /** Strings that end the text besides the end of the turn; they are not part of the reply. */
  readonly stop?: readonly string[];
  /** What the reply has already begun with: the model continues it. Default: nothing. */
  readonly prefill?: string;
  /** Most tokens where `samplingParams` has no `maxTokens`; what is left of the context may be less. */
  readonly mostTokens?: number;
  /** Whether deltas and the reply tell which tokens they were made of. Default false. */
  readonly wantsTokens?: boolean;
  /** How many of the most likely tokens to report at each position. Default 0. */
  readonly topLogprobs?: number;
  /** Tokens per piece of a stream, each piece a separate request. Default: one request, delivered when it is done. */
  readonly pieceTokens?: number;
}

/** Why a reply ended. */
export type FinishReason = 'stop' | 'length' | 'tool_calls';

/** A reply and everything that is known about it. */
export interface ChatReply {
  /** What was said, cut at a stop string. */
  readonly text: string;
  readonly thinking: string;
  /** Every one has an id. */
  readonly toolCalls: readonly (ToolCall & { readonly id: string })[];
  readonly finish: FinishReason;
  /** The stop string that ended the text, if one did. */
  readonly stopText: string | undefined;
  readonly stopReason: StopReason;
  /** Exactly what was sampled, also after a stop string. */
  readonly tokens: Int32Array;
  readonly logprobs: Float32Array | undefined;
  readonly topkLogprobs: TopkLogprobs | undefined;
  /** How many of the tokens belong to what is told: not the end of the turn, and nothing after a stop string. All, unless `wantsTokens`. */
  readonly told: number;
  readonly prompt: ModelInput;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** How many tokens were sampled, where their ids are not told. Default: as many as `tokens`. */
  readonly sampledTokens?: number;
  /** What was sampled before and thrown away, because it was not the JSON that was asked for. */
  readonly discarded?: { readonly promptTokens: number; readonly sampledTokens: number };
}

/** A sampled token with its log probability, and the most likely ones in its place. */
export interface SampledToken {
  readonly token: number;
  readonly logprob: number;
  readonly top: readonly (readonly [token: number, logprob: number])[];
}

/** A reply as it arrives. Text and thinking, joined, are those of the reply at the end. */
export type ChatDelta =
  | { readonly type: 'text'; readonly text: string; readonly tokens?: readonly SampledToken[] }
  | { readonly type: 'thinking'; readonly thinking: string; readonly tokens?: readonly SampledToken[] }
  | { readonly type: 'tool-call'; readonly call: ToolCall & { readonly id: string } }
  | { readonly type: 'reply'; readonly reply: ChatReply };

/** The conversation of a request, with its tools declared in the family's own words. */
export function declaredMessages(renderer: Renderer, { messages, tools = [] }: ChatRequest): readonly Message[] {
  if (tools.length === 0) return messages;
  const [first, ...rest] = messages;
  return first?.role === 'system'
    ? [...renderer.declareTools(tools, textOf(first)), ...rest]
    : [...renderer.declareTools(tools), ...messages];
}

/** The prompt of a request. @throws RendererError if the family cannot write it, GatewayError if it is too long. */
export function chatPrompt(model: ChatModel, request: ChatRequest): ModelInput {
  const { renderer, promptOf, maxPromptChars = Infinity } = model;
  refuseLongPrompt(request, maxPromptChars);
  if (promptOf !== undefined) return promptOf(request);
  return plainPrompt(renderer, request);
}

/** The prompt as the renderer writes it, with what the reply has already begun with. */
export const plainPrompt = (renderer: Renderer, request: ChatRequest): ModelInput =>
  renderer.buildGenerationPrompt(
    declaredMessages(renderer, request),
    request.prefill === undefined ? {} : { prefill: request.prefill },
  );

/** Tokens of replies, with those that were thrown away. A prompt is read once for all replies sampled from it. */
export function tokenUsage(replies: readonly ChatReply[]): {
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
