import type { ContentPart, Message, ToolCall } from '../chat/renderers/core/Message.js';
import { RendererError } from '../chat/renderers/core/RendererError.js';
import type { PromptMessage, PromptPart, ToolResultPart } from './types.js';

/** The AI SDK's prompt as a conversation. @throws RendererError for a part that has no place in one. */
export function toMessages(prompt: readonly PromptMessage[]): Message[] {
  return prompt.flatMap((message): Message[] => {
    if (message.role === 'system') return [{ role: 'system', content: message.content }];
    if (message.role === 'tool') return toolMessages(message.content);
    const calls = message.content.flatMap((part): ToolCall[] =>
      part.type === 'tool-call'
        ? [{ id: part.toolCallId, name: part.toolName, arguments: JSON.stringify(part.input ?? {}) }]
        : [],
    );
    const content = message.content.flatMap((part) => contentPart(part, message.role));
    const said: Message = {
      role: message.role,
      // Text alone goes as a string, as most families take it.
      content: content.every(({ type }) => type === 'text') ? content.map(textOf).join('') : content,
      ...(calls.length === 0 ? {} : { toolCalls: calls }),
    };
    return [said, ...toolMessages(message.content)];
  });
}

const textOf = (part: ContentPart): string => (part.type === 'text' ? part.text : '');

function contentPart(part: PromptPart, role: string): ContentPart[] {
  switch (part.type) {
    case 'text':
      return [{ type: 'text', text: part.text }];
    case 'reasoning':
      return [{ type: 'thinking', thinking: part.text }];
    case 'file':
      return [imagePart(part.mediaType, part.data)];
    case 'tool-call':
    case 'tool-result':
      return [];
    default:
      throw new RendererError(`a ${part.type} part of a ${role} message`);
  }
}

const IMAGES: Readonly<Record<string, 'png' | 'jpeg'>> = { 'image/png': 'png', 'image/jpeg': 'jpeg' };

function imagePart(mediaType: string, data: unknown): ContentPart {
  const bytes = bytesOf(data);
  const format = IMAGES[mediaType] ?? (mediaType === 'image/*' ? formatOf(bytes) : undefined);
  if (format === undefined) throw new RendererError(`a file of type ${mediaType}; PNG and JPEG images are known`);
  return { type: 'image', format, data: bytes };
}

/** V3 has the data itself, V4 says of which kind it is; text is base64. */
function bytesOf(data: unknown): Uint8Array {
  const inner =
    typeof data === 'object' && data !== null && (data as { type?: unknown }).type === 'data'
      ? (data as { data: unknown }).data
      : data;
  if (inner instanceof Uint8Array) return inner;
  if (typeof inner === 'string') return Buffer.from(inner, 'base64');
  throw new RendererError('a file by address; the AI SDK downloads it when the model does not claim to read it');
}

const formatOf = (bytes: Uint8Array): 'png' | 'jpeg' | undefined =>
  bytes[0] === 0x89 ? 'png' : bytes[0] === 0xff ? 'jpeg' : undefined;

function toolMessages(parts: readonly PromptPart[]): Message[] {
  return parts.flatMap((part): Message[] =>
    part.type === 'tool-result'
      ? [{ role: 'tool', name: part.toolName, toolCallId: part.toolCallId, content: resultText(part.output) }]
      : [],
  );
}

function resultText({ type, value, reason }: ToolResultPart['output']): string {
  if (type === 'execution-denied') return `The call was denied${reason === undefined ? '' : `: ${reason}`}.`;
  if (typeof value === 'string') return value;
  if (type !== 'content') return JSON.stringify(value ?? null);
  return (value as readonly { type: string; text?: string }[])
    .map((item) => {
      if (item.type !== 'text') throw new RendererError(`a ${item.type} in the result of a tool`);
      return item.text ?? '';
    })
    .join('');
}
