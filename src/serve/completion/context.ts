import type { Message } from '../../chat/renderers/core/Message.js';
import { GatewayError } from '../http/GatewayError.js';
import type { ChatModel, ChatRequest } from './ChatRequest.js';

/** What clients match on to shorten a conversation. */
const TOO_LONG = { code: 'context_length_exceeded' };

/**
 * How many tokens to sample: what was asked for, or the limit of the gateway, but no more than fits behind the prompt. A
 * service that checks the context refuses more. Undefined: the service decides.
 *
 * @throws GatewayError when nothing fits behind the prompt
 */
export function tokensLeft(
  { contextTokens = Infinity }: Pick<ChatModel, 'contextTokens'>,
  asked: number | undefined,
  promptTokens: number,
): number | undefined {
  const left = contextTokens - promptTokens;
  if (left < 1) {
    throw new GatewayError(
      400,
      `the prompt has ${promptTokens} tokens, and the context of this model has ${contextTokens}`,
      'messages',
      TOO_LONG,
    );
  }
  if (asked === undefined) return Number.isFinite(left) ? left : undefined;
  return Math.min(asked, left);
}

/** Refuses a prompt that is far too long before it is encoded, which would hold everybody up. @throws GatewayError */
export function refuseLongPrompt({ messages, tools = [] }: ChatRequest, most: number): void {
  if (most === Infinity) return;
  const declared = tools.length === 0 ? 0 : JSON.stringify(tools).length;
  const chars = messages.reduce((sum, message) => sum + charsOf(message), declared);
  if (chars > most) throw tooManyChars(chars, most);
}

export const tooManyChars = (chars: number, most: number): GatewayError =>
  new GatewayError(400, `the prompt has ${chars} characters; at most ${most} are read`, 'messages', TOO_LONG);

function charsOf({ content, toolCalls = [] }: Message): number {
  const calls = toolCalls.reduce((sum, call) => sum + call.name.length + call.arguments.length, 0);
  if (typeof content === 'string') return calls + content.length;
  return content.reduce((sum, part) => {
    if (part.type === 'text') return sum + part.text.length;
    return part.type === 'thinking' ? sum + part.thinking.length : sum;
  }, calls);
}
