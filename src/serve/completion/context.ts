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

/** Longest word that is like any other: longer ones take twenty times as long to encode. */
const LONG_WORDS = /[\p{L}\p{M}\p{N}]{257,}|[^\s\p{L}\p{N}]{257,}|\s{257,}/gu;
const MOST_LONG_CHARS = 131_072;

/** Refuses a prompt before it is encoded if that would hold everybody up. @throws GatewayError */
export function refuseLongPrompt({ messages, tools = [] }: ChatRequest, most: number): void {
  if (most === Infinity) return;
  // JSON is written anew for the prompt, and takes longer to encode than prose.
  const declared = tools.length === 0 ? 0 : 2 * JSON.stringify(tools).length;
  refuseLongTexts(messages.flatMap(textsOf), most, declared);
}

/** The same for plain texts; `more` is how many characters come on top. @throws GatewayError */
export function refuseLongTexts(texts: readonly string[], most: number, more = 0): void {
  if (most === Infinity) return;
  const chars = texts.reduce((sum, text) => sum + text.length, more);
  if (chars > most) throw tooLong(`the prompt has ${chars} characters; at most ${most} are read`);
  if (chars <= MOST_LONG_CHARS) return;
  let long = 0;
  for (const text of texts) for (const [word] of text.matchAll(LONG_WORDS)) long += word.length;
  if (long > MOST_LONG_CHARS) throw tooLong('the prompt has too many words of more than 256 characters');
}

const tooLong = (why: string): GatewayError => new GatewayError(400, why, 'messages', TOO_LONG);

function textsOf({ content, toolCalls = [] }: Message): string[] {
  const calls = toolCalls.flatMap((call) => [call.name, call.arguments]);
  if (typeof content === 'string') return [content, ...calls];
  const said = content.map((part) =>
    part.type === 'text' ? part.text : part.type === 'thinking' ? part.thinking : '',
  );
  return [...said, ...calls];
}
