import type { ContentPart, Message, ToolCall } from './Message.js';
import { textOf, thinkingOf } from './content.js';
import { parseJson } from '../tools/pythonJson.js';
import { readMessage } from './readMessage.js';
import { RendererError } from './RendererError.js';

/**
 * Reads messages as chat files and OpenAI-compatible services write them: `tool_calls`, `tool_call_id`, `reasoning_content`, `weight`, content as
 * text or parts, and this library's own camelCase form. A reply that carries its reasoning inline, `<think>…</think>answer`, is split.
 *
 * @throws RendererError naming the message and the field that is not as expected
 */
export function messagesFrom(value: unknown): Message[] {
  if (!Array.isArray(value)) throw new RendererError('messages must be a list');
  const fail = (where: string, what: string): never => {
    throw new RendererError(`${where} ${what}`);
  };
  return value.map((item, index) => readMessage(item, `messages[${index}]`, { fail }));
}

/** A message as OpenAI-compatible services take it, reasoning as `reasoning_content`. Throws a `RendererError` on audio. */
export function toOpenAIMessage(message: Message): Record<string, unknown> {
  const thinking = thinkingOf(message);
  const images = typeof message.content === 'string' ? [] : message.content.filter((part) => part.type === 'image');
  if (typeof message.content !== 'string' && message.content.some((part) => part.type === 'audio')) {
    throw new RendererError('audio has no OpenAI form here');
  }
  return {
    role: message.role,
    content: images.length === 0 ? textOf(message) : openAIParts(message.content as readonly ContentPart[]),
    ...(thinking === '' ? {} : { reasoning_content: thinking }),
    ...(message.toolCalls && message.toolCalls.length > 0
      ? {
          tool_calls: message.toolCalls.map(({ id, name, arguments: json }) => ({
            type: 'function',
            ...(id === undefined ? {} : { id }),
            function: { name, arguments: json },
          })),
        }
      : {}),
    ...(message.toolCallId === undefined ? {} : { tool_call_id: message.toolCallId }),
    ...(message.name === undefined ? {} : { name: message.name }),
    ...(message.weight === undefined ? {} : { weight: message.weight }),
  };
}

function openAIParts(parts: readonly ContentPart[]): unknown[] {
  return parts.flatMap((part): unknown[] => {
    if (part.type === 'text') return [part];
    if (part.type !== 'image') return [];
    if (part.data === undefined) throw new RendererError('an image by location has no OpenAI form');
    const data = Buffer.from(part.data).toString('base64');
    return [{ type: 'image_url', image_url: { url: `data:image/${part.format};base64,${data}` } }];
  });
}

/** Arguments of a call as a map in their written order, or undefined if they are not a JSON object. */
export function argumentsOf(call: ToolCall): ReadonlyMap<string, unknown> | undefined {
  if (call.arguments.trim() === '') return new Map();
  try {
    const parsed = parseJson(call.arguments);
    return parsed instanceof Map ? (parsed as ReadonlyMap<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
