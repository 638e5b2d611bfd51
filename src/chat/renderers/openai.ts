import type { Content, ContentPart, Message, ToolCall, ToolSpec } from './Message.js';
import { textOf, thinkingOf } from './content.js';
import { parseJson, pythonJson } from './pythonJson.js';
import { RendererError } from './RendererError.js';

/**
 * Reads messages as chat files and OpenAI-compatible services write them: `tool_calls`, `tool_call_id`, `reasoning_content`, content as text
 * or parts, and this library's own camelCase form. A reply that carries its reasoning inline, `<think>…</think>answer`, is split.
 *
 * @throws RendererError naming the message and the field that is not as expected
 */
export function messagesFrom(value: unknown): Message[] {
  if (!Array.isArray(value)) throw new RendererError('messages must be a list');
  return value.map((item, index) => messageFrom(item, index));
}

function messageFrom(item: unknown, index: number): Message {
  const fail = (what: string): never => {
    throw new RendererError(`message ${index}: ${what}`);
  };
  if (typeof item !== 'object' || item === null) return fail('is not an object');
  const raw = item as Record<string, unknown>;
  const role = raw['role'];
  if (typeof role !== 'string') return fail('role is not a string');
  const reasoning = raw['reasoning_content'] ?? raw['reasoning'];
  let content = contentFrom(raw['content'], fail);
  if (typeof reasoning === 'string' && reasoning !== '') content = withReasoning(reasoning, content);
  else if (role === 'assistant' && typeof content === 'string') content = splitInline(content);
  const calls = raw['tool_calls'] ?? raw['toolCalls'];
  const id = raw['tool_call_id'] ?? raw['toolCallId'];
  const tools = raw['tools'];
  return {
    role,
    content,
    ...(Array.isArray(calls) && calls.length > 0 ? { toolCalls: calls.map((call) => callFrom(call, fail)) } : {}),
    ...(typeof id === 'string' ? { toolCallId: id } : {}),
    ...(typeof raw['name'] === 'string' ? { name: raw['name'] } : {}),
    ...(typeof raw['trainable'] === 'boolean' ? { trainable: raw['trainable'] } : {}),
    ...(Array.isArray(tools) ? { tools: tools.map((tool) => toolFrom(tool, fail)) } : {}),
  };
}

function contentFrom(value: unknown, fail: (what: string) => never): Content {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return fail('content is neither text nor a list of parts');
  return value.map((item): ContentPart => {
    const part = item as Record<string, unknown> | null;
    if (part?.['type'] === 'text' && typeof part['text'] === 'string') return { type: 'text', text: part['text'] };
    if (part?.['type'] === 'thinking' && typeof part['thinking'] === 'string') {
      return { type: 'thinking', thinking: part['thinking'] };
    }
    if (part?.['type'] === 'image_url') return imageFrom(part['image_url'], fail);
    if (part?.['type'] === 'image' || part?.['type'] === 'audio') return item as ContentPart;
    return fail(`content part of type ${String(part?.['type'])} is not known`);
  });
}

const DATA_IMAGE = /^data:image\/(png|jpeg|jpg);base64,(.*)$/s;

function imageFrom(value: unknown, fail: (what: string) => never): ContentPart {
  const url = typeof value === 'string' ? value : (value as { url?: unknown } | null)?.url;
  const match = typeof url === 'string' ? DATA_IMAGE.exec(url) : null;
  if (match === null) return fail('image_url must be a data: URI of a PNG or JPEG; fetch remote images first');
  return { type: 'image', format: match[1] === 'png' ? 'png' : 'jpeg', data: Buffer.from(match[2] ?? '', 'base64') };
}

function withReasoning(thinking: string, content: Content): Content {
  const text: readonly ContentPart[] =
    typeof content === 'string' ? (content === '' ? [] : [{ type: 'text', text: content }]) : content;
  return [{ type: 'thinking', thinking }, ...text];
}

function splitInline(content: string): Content {
  const end = content.indexOf('</think>');
  if (!content.startsWith('<think>') || end < 0) return content;
  const thinking = content.slice('<think>'.length, end).replace(/^\n+|\n+$/g, '');
  const text = content.slice(end + '</think>'.length).replace(/^\n+/, '');
  return thinking === '' ? text : withReasoning(thinking, text);
}

function callFrom(value: unknown, fail: (what: string) => never): ToolCall {
  const raw = value as Record<string, unknown> | null;
  const body = (raw?.['function'] ?? raw) as Record<string, unknown> | null;
  const name = body?.['name'];
  const args = body?.['arguments'];
  if (typeof name !== 'string') return fail('a tool call has no function name');
  const json = typeof args === 'string' ? args : pythonJson(args ?? {}, { ensureAscii: false });
  return { name, arguments: json, ...(typeof raw?.['id'] === 'string' ? { id: raw['id'] } : {}) };
}

function toolFrom(value: unknown, fail: (what: string) => never): ToolSpec {
  const raw = value as Record<string, unknown> | null;
  const body = (raw?.['function'] ?? raw) as Record<string, unknown> | null;
  if (typeof body?.['name'] !== 'string') return fail('a tool has no name');
  return body as unknown as ToolSpec;
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

/** Arguments of a call as a map in their written order, or undefined when they are no JSON object. */
export function argumentsOf(call: ToolCall): ReadonlyMap<string, unknown> | undefined {
  if (call.arguments.trim() === '') return new Map();
  try {
    const parsed = parseJson(call.arguments);
    return parsed instanceof Map ? (parsed as ReadonlyMap<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
