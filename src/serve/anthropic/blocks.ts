import type { ContentPart, Message, ToolCall } from '../../chat/renderers/core/Message.js';
import type { ChatReply } from '../completion/ChatRequest.js';
import type { Fields } from '../http/Fields.js';
import { parseJson } from '../../support/parseJson.js';

/** A reply as blocks: what it thought, said and called. */
export const blocksOf = ({ thinking, text, toolCalls }: ChatReply): object[] => [
  ...(thinking === '' ? [] : [{ type: 'thinking', thinking, signature: '' }]),
  ...(text === '' ? [] : [{ type: 'text', text }]),
  ...toolCalls.map(({ id, name, arguments: json }) => ({ type: 'tool_use', id, name, input: inputOf(json) })),
];

/** If the model's arguments are not JSON, the caller sees them unchanged. */
export const inputOf = (json: string): unknown => parseJson(json, { unparsed: json });

/** One message. Tool results in it become separate messages, before the text of the user. */
export function readMessage(fields: Fields): Message[] {
  const role = fields.text('role');
  if (role !== 'user' && role !== 'assistant' && role !== 'system') {
    throw fields.wrong('role', 'must be user, assistant or system');
  }
  const given = fields.any('content');
  if (typeof given === 'string') return [{ role, content: given }];
  const results: Message[] = [];
  const calls: ToolCall[] = [];
  const content: ContentPart[] = [];
  for (const block of fields.objects('content')) {
    const type = block.text('type');
    if (type === 'text') content.push({ type: 'text', text: block.text('text') ?? '' });
    else if (type === 'thinking') content.push({ type: 'thinking', thinking: block.text('thinking') ?? '' });
    else if (type === 'image') content.push(readImage(block));
    else if (type === 'tool_use') calls.push(readCall(block));
    else if (type === 'tool_result') results.push(readResult(block));
    else if (type !== 'redacted_thinking') {
      throw block.wrong('type', `${type ?? 'undefined'} is not supported by this gateway`);
    }
  }
  const plain = content.every((part) => part.type === 'text');
  const said: Message = {
    role,
    content: plain ? content.map((part) => (part.type === 'text' ? part.text : '')).join('') : content,
    ...(calls.length === 0 ? {} : { toolCalls: calls }),
  };
  return content.length === 0 && calls.length === 0 ? results : [...results, said];
}

/** Text, or a list of blocks of text. */
export function textIn(fields: Fields, name: string): string {
  const given = fields.any(name) ?? '';
  if (typeof given === 'string') return given;
  if (!Array.isArray(given)) throw fields.wrong(name, 'must be a string or a list of text blocks');
  return fields
    .objects(name)
    .map((block) => {
      if (block.text('type') !== 'text') throw block.wrong('type', 'must be text here');
      return block.text('text') ?? '';
    })
    .join('');
}

function readCall(block: Fields): ToolCall {
  const name = block.text('name');
  if (name === undefined) throw block.wrong('name', 'is missing');
  const id = block.text('id');
  return { name, arguments: JSON.stringify(block.any('input') ?? {}), ...(id === undefined ? {} : { id }) };
}

/** No family has a place for `is_error`, so the model reads it. */
function readResult(block: Fields): Message {
  const toolCallId = block.text('tool_use_id');
  if (toolCallId === undefined) throw block.wrong('tool_use_id', 'is missing');
  const content = block.any('content');
  const isObject = typeof content === 'object' && !Array.isArray(content);
  const text = isObject ? JSON.stringify(content) : textIn(block, 'content');
  return { role: 'tool', toolCallId, content: block.flag('is_error') === true ? `Error: ${text}` : text };
}

function readImage(block: Fields): ContentPart {
  const source = block.object('source');
  const format = { 'image/png': 'png', 'image/jpeg': 'jpeg' }[source?.text('media_type') ?? ''];
  if (source?.text('type') !== 'base64' || format === undefined) {
    throw block.wrong('source', 'must be a PNG or JPEG in base64');
  }
  return { type: 'image', format: format as 'png' | 'jpeg', data: Buffer.from(source.text('data') ?? '', 'base64') };
}
