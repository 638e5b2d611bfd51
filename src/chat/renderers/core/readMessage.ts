import type { Content, ContentPart, ImagePart, Message, ToolCall, ToolSpec } from './Message.js';
import { pythonJson } from '../tools/pythonJson.js';
import { parseJson } from '../../../support/parseJson.js';

/** How a message is read: what to do with what is wrong, and with what is not used. */
export interface MessageReading {
  /** Throws; `where` is the path of what is wrong, `messages[3].role`. */
  readonly fail: (where: string, what: string) => never;
  /** Told the fields that nothing reads, as `messages[].annotations`. */
  readonly unused?: (field: string) => void;
  /** The images for parts that have none, in order. */
  readonly images?: Iterator<unknown>;
}

type Fields = Readonly<Record<string, unknown>>;

const READ = new Set(
  'role content reasoning_content reasoning thinking tool_calls toolCalls function_call tool_call_id toolCallId name trainable weight tools refusal'.split(
    ' ',
  ),
);

/**
 * A message as chat files and OpenAI-compatible services write it, or in this library's own form: reasoning as `reasoning_content`, `reasoning`
 * or `thinking` or inline, content as text or parts, calls as `tool_calls` or the older `function_call`, `weight`.
 */
export function readMessage(value: unknown, where: string, reading: MessageReading): Message {
  const { fail } = reading;
  if (!isFields(value)) return fail(where, 'must be an object');
  if (typeof value['role'] !== 'string') return fail(`${where}.role`, 'must be a string');
  const role = value['role'] === 'function' ? 'tool' : value['role'];
  const { tools, trainable, weight, name } = value;
  const calls = callsIn(value, where, reading);
  const id = value['tool_call_id'] ?? value['toolCallId'];
  if (weight != null && weight !== 0 && weight !== 1) fail(`${where}.weight`, 'must be 0 or 1');
  for (const [field, inner] of Object.entries(value)) {
    if (inner != null && !READ.has(field)) reading.unused?.(`messages[].${field}`);
  }
  return {
    role,
    content: contentOf(value, role, calls.length > 0, where, reading),
    ...(calls.length > 0 ? { toolCalls: calls } : {}),
    ...(typeof id === 'string' ? { toolCallId: id } : {}),
    ...(typeof name === 'string' ? { name } : {}),
    ...(typeof trainable === 'boolean' ? { trainable } : {}),
    ...(weight === 0 || weight === 1 ? { weight } : {}),
    ...(tools == null ? {} : { tools: readTools(tools, `${where}.tools`, reading) }),
  };
}

/** Tools as OpenAI declares them, bare, or as JSON text; some data sets keep them so. */
export function readTools(value: unknown, where: string, reading: MessageReading): ToolSpec[] {
  const list = typeof value === 'string' ? parsed(value === '' ? '[]' : value, where, reading) : value;
  if (!Array.isArray(list)) return reading.fail(where, 'must be a list of tools');
  return list.map((tool: unknown, place) => {
    const body = isFields(tool) && isFields(tool['function']) ? tool['function'] : tool;
    if (!isFields(body) || typeof body['name'] !== 'string') return reading.fail(`${where}[${place}]`, 'has no name');
    return body as unknown as ToolSpec;
  });
}

function callsIn(message: Fields, where: string, reading: MessageReading): ToolCall[] {
  const calls = message['tool_calls'] ?? message['toolCalls'];
  if (Array.isArray(calls)) return calls.map((call, at) => readCall(call, `${where}.tool_calls[${at}]`, reading));
  if (calls != null) return reading.fail(`${where}.tool_calls`, 'must be a list');
  const single = message['function_call'];
  return single == null ? [] : [readCall(single, `${where}.function_call`, reading)];
}

/** One call of a tool; its arguments may be text or an object. */
export function readCall(value: unknown, where: string, { fail }: MessageReading): ToolCall {
  if (!isFields(value)) return fail(where, 'must be an object');
  const inner = isFields(value['function']) ? value['function'] : value;
  const { name, arguments: given } = inner;
  if (typeof name !== 'string') return fail(`${where}.name`, 'must be a string: the call has no function name');
  const json = typeof given === 'string' ? given : pythonJson(given ?? {}, { ensureAscii: false });
  return { name, arguments: json, ...(typeof value['id'] === 'string' ? { id: value['id'] } : {}) };
}

function contentOf(message: Fields, role: string, hasCalls: boolean, where: string, reading: MessageReading): Content {
  const reasoning = ['reasoning_content', 'reasoning', 'thinking']
    .map((field) => message[field])
    .find((value) => typeof value === 'string' && value !== '') as string | undefined;
  const refused = message['refusal'];
  const given = message['content'] ?? (typeof refused === 'string' ? refused : undefined);
  if (given == null && !hasCalls && reasoning === undefined) {
    return reading.fail(`${where}.content`, 'must be a string or a list of parts');
  }
  const content = partsIn(given ?? '', `${where}.content`, reading);
  if (reasoning !== undefined) return withReasoning(reasoning, content);
  return role === 'assistant' && typeof content === 'string' ? splitInline(content) : content;
}

function partsIn(value: unknown, where: string, reading: MessageReading): Content {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return reading.fail(where, 'must be a string or a list of parts');
  return value.map((part: unknown, place) => partOf(part, `${where}[${place}]`, reading));
}

function partOf(part: unknown, where: string, reading: MessageReading): ContentPart {
  const { fail } = reading;
  if (typeof part === 'string') return { type: 'text', text: part };
  if (!isFields(part)) return fail(where, 'must be an object');
  const { type = 'text' } = part;
  switch (type) {
    case 'text':
    case 'input_text':
    case 'output_text':
      if (typeof part['text'] !== 'string') return fail(`${where}.text`, 'must be a string');
      return { type: 'text', text: part['text'] };
    case 'refusal':
      if (typeof part['refusal'] !== 'string') return fail(`${where}.refusal`, 'must be a string');
      return { type: 'text', text: part['refusal'] };
    case 'thinking':
    case 'reasoning': {
      const thinking = part['thinking'] ?? part['reasoning'] ?? part['text'];
      if (typeof thinking !== 'string') return fail(`${where}.thinking`, 'must be a string');
      return { type: 'thinking', thinking };
    }
    case 'image_url':
    case 'input_image':
    case 'image':
      return imageOf(part, where, reading);
    case 'audio': {
      const dmel = bytesOf(part['dmel']);
      return dmel === undefined ? fail(`${where}.dmel`, 'must be bytes') : { type: 'audio', dmel };
    }
    default:
      return fail(where, `is of type ${String(type)}, which is not known`);
  }
}

/** `image_url`, an image of this library's own form, or one of the row's images that the part stands for. */
function imageOf(part: Fields, where: string, reading: MessageReading): ImagePart {
  const { fail } = reading;
  if (typeof part['location'] === 'string') return part as unknown as ImagePart;
  const url = part['image_url'];
  const given = part['data'] ?? part['image'] ?? (isFields(url) ? url['url'] : url) ?? nextOf(reading.images);
  if (given === undefined) return fail(where, 'has no image');
  const data = bytesOf(given);
  const format = data && (formatOf(data) ?? (typeof given === 'string' ? uriFormat(given) : part['format']));
  if (data === undefined || (format !== 'png' && format !== 'jpeg')) {
    return fail(where, 'must be a PNG or JPEG as a data: URI, base64 or bytes; fetch remote images first');
  }
  const numbers = ['width', 'height', 'expectedTokens'].filter((field) => typeof part[field] === 'number');
  return { type: 'image', format, data, ...Object.fromEntries(numbers.map((field) => [field, part[field]])) };
}

function formatOf(data: Uint8Array): 'png' | 'jpeg' | undefined {
  if (data[0] === 0x89 && data[1] === 0x50) return 'png';
  return data[0] === 0xff && data[1] === 0xd8 ? 'jpeg' : undefined;
}

const uriFormat = (uri: string): string | undefined =>
  /^data:image\/(png|jpe?g);base64,/.exec(uri.slice(0, 40))?.[1]?.replace('jpg', 'jpeg');

/** Bytes as they are, as Parquet keeps an image (`{ bytes, path }`), from a data: URI, or from base64. */
function bytesOf(value: unknown): Uint8Array | undefined {
  if (value instanceof Uint8Array) return value;
  if (isFields(value)) return value['bytes'] instanceof Uint8Array ? value['bytes'] : undefined;
  if (typeof value !== 'string') return undefined;
  return Buffer.from(value.startsWith('data:') ? value.slice(value.indexOf(',') + 1) : value, 'base64');
}

function nextOf(images: Iterator<unknown> | undefined): unknown {
  const next = images?.next();
  return next === undefined || next.done === true ? undefined : next.value;
}

function withReasoning(thinking: string, content: Content): Content {
  const text: readonly ContentPart[] =
    typeof content === 'string' ? (content === '' ? [] : [{ type: 'text', text: content }]) : content;
  return [{ type: 'thinking', thinking }, ...text];
}

/** A reply that carries its reasoning inline, `<think>…</think>answer`, in its two parts. */
function splitInline(content: string): Content {
  const end = content.indexOf('</think>');
  if (!content.startsWith('<think>') || end < 0) return content;
  const thinking = content.slice('<think>'.length, end).replace(/^\n+|\n+$/g, '');
  const text = content.slice(end + '</think>'.length).replace(/^\n+/, '');
  return thinking === '' ? text : withReasoning(thinking, text);
}

function parsed(text: string, where: string, { fail }: MessageReading): unknown {
  const value = parseJson(text);
  return value === undefined ? fail(where, 'is text that is not valid JSON') : value;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
