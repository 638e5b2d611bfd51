import type { ContentPart, Message } from '../../chat/renderers/core/Message.js';
import { messagesFrom } from '../../chat/renderers/core/openai.js';
import type { ChatReply } from '../completion/ChatRequest.js';
import type { Gateway } from '../http/Endpoint.js';
import type { Fields } from '../http/Fields.js';

/** An item of a response as it was sent: a message, reasoning, or a call. */
export type Item = Readonly<Record<string, unknown>>;

const MOST_CHARS = 16 * 1024 * 1024;

/**
 * What was said lately, by id. Some clients do not send an answer back but name it (`item_reference`). Keeps the newest
 * 16 million characters.
 */
export class ItemStore {
  readonly #items = new Map<string, { readonly item: Item; readonly chars: number }>();
  #chars = 0;

  add(items: readonly Item[]): void {
    for (const item of items) {
      const chars = JSON.stringify(item).length;
      this.#items.set(String(item['id']), { item, chars });
      this.#chars += chars;
    }
    for (const [id, { chars }] of this.#items) {
      if (this.#chars <= MOST_CHARS) break;
      this.#items.delete(id);
      this.#chars -= chars;
    }
  }

  find(id: string): Item | undefined {
    return this.#items.get(id)?.item;
  }
}

/** How reasoning is written: where clients look for it. */
export interface ReasoningForm {
  /** Also as a summary, for clients that show nothing else. */
  readonly summary: boolean;
  /** Also in `encrypted_content`, for clients that send nothing else back. It is not secret: base64. */
  readonly encrypted: boolean;
}

export const textPart = (text: string): object => ({ type: 'output_text', text, annotations: [], logprobs: [] });

export const messageItem = (id: string, text: string, status = 'completed'): Item => ({
  type: 'message',
  id,
  status,
  role: 'assistant',
  content: status === 'completed' ? [textPart(text)] : [],
});

export const reasoningItem = (id: string, thinking: string, { summary, encrypted }: ReasoningForm): Item => ({
  type: 'reasoning',
  id,
  summary: summary ? [{ type: 'summary_text', text: thinking }] : [],
  content: [{ type: 'reasoning_text', text: thinking }],
  ...(encrypted ? { encrypted_content: Buffer.from(thinking).toString('base64') } : {}),
});

export const callItem = ({ id, name, arguments: json }: ChatReply['toolCalls'][number], gateway: Gateway): Item => ({
  type: 'function_call',
  id: `fc_${gateway.newId()}`,
  call_id: id,
  name,
  arguments: json,
  status: 'completed',
});

/** A reply as items: what it thought, said and called. */
export function itemsOf({ thinking, text, toolCalls }: ChatReply, form: ReasoningForm, gateway: Gateway): Item[] {
  return [
    ...(thinking === '' ? [] : [reasoningItem(`rs_${gateway.newId()}`, thinking, form)]),
    ...(text === '' && toolCalls.length > 0 ? [] : [messageItem(`msg_${gateway.newId()}`, text)]),
    ...toolCalls.map((call) => callItem(call, gateway)),
  ];
}

/** The conversation that items stand for. Reasoning, text and calls that follow each other are one turn. */
export function readItems(items: readonly Fields[], store: ItemStore): Message[] {
  const messages: Message[] = [];
  for (const item of items) {
    const message = readItem(item, store);
    const last = messages.at(-1);
    if (last?.role === 'assistant' && message.role === 'assistant') {
      messages[messages.length - 1] = joined(last, message);
    } else if (message.role !== 'assistant' || message.content !== '' || message.toolCalls !== undefined) {
      messages.push(message);
    }
  }
  return messages;
}

function joined(first: Message, second: Message): Message {
  const content = [...partsOf(first), ...partsOf(second)];
  const calls = [...(first.toolCalls ?? []), ...(second.toolCalls ?? [])];
  return {
    role: 'assistant',
    content: content.every((part) => part.type === 'text') ? content.map((part) => part.text).join('') : content,
    ...(calls.length === 0 ? {} : { toolCalls: calls }),
  };
}

const partsOf = ({ content }: Message): readonly ContentPart[] =>
  typeof content === 'string' ? (content === '' ? [] : [{ type: 'text', text: content }]) : content;

function readItem(fields: Fields, store: ItemStore): Message {
  // A reference may come without a type.
  const type = fields.text('type') ?? (fields.any('role') === undefined ? 'item_reference' : 'message');
  switch (type) {
    case 'message':
      return readSaid(fields);
    case 'reasoning':
      return { role: 'assistant', content: thinkingIn(fields) };
    case 'function_call': {
      const name = fields.text('name');
      const id = fields.text('call_id');
      if (name === undefined) throw fields.wrong('name', 'is missing');
      const call = { name, arguments: fields.text('arguments') ?? '{}', ...(id === undefined ? {} : { id }) };
      return { role: 'assistant', content: '', toolCalls: [call] };
    }
    case 'function_call_output': {
      const toolCallId = fields.text('call_id');
      if (toolCallId === undefined) throw fields.wrong('call_id', 'is missing');
      return { role: 'tool', toolCallId, content: outputIn(fields) };
    }
    case 'item_reference': {
      const id = fields.text('id') ?? '';
      const known = store.find(id);
      if (known !== undefined) return readItem(fields.inside(known, fields.path(id)), store);
      throw fields.wrong('id', `${id} is no longer known here: send items whole, which clients do with store: false`);
    }
    default:
      throw fields.wrong('type', `${type} is not supported by this gateway`);
  }
}

function readSaid(fields: Fields): Message {
  const content = fields.any('content');
  const parts = typeof content === 'string' ? content : fields.objects('content').map(readPart);
  const [message] = messagesFrom([{ role: fields.text('role') ?? 'user', content: parts }]);
  return message!;
}

/** Parts are named after their side here; they are text and images all the same. */
function readPart(part: Fields): object {
  const type = part.text('type');
  if (type === 'input_text' || type === 'output_text') return { type: 'text', text: part.text('text') ?? '' };
  if (type === 'refusal') return { type: 'text', text: part.text('refusal') ?? '' };
  if (type === 'input_image') return { type: 'image_url', image_url: part.any('image_url') };
  throw part.wrong('type', `${type ?? 'undefined'} is not supported by this gateway`);
}

/** The reasoning that an item carries, wherever its client kept it. */
function thinkingIn(fields: Fields): readonly ContentPart[] | string {
  const texts = (name: string): string =>
    fields
      .objects(name)
      .map((part) => part.text('text') ?? '')
      .join('\n');
  const kept = fields.text('encrypted_content');
  const thinking = texts('content') || (kept === undefined ? texts('summary') : Buffer.from(kept, 'base64').toString());
  return thinking === '' ? '' : [{ type: 'thinking', thinking }];
}

/** What a tool returned: text, or a list of texts. */
function outputIn(fields: Fields): string {
  const output = fields.any('output');
  if (typeof output === 'string' || output === undefined) return output ?? '';
  if (!Array.isArray(output)) return JSON.stringify(output);
  return fields
    .objects('output')
    .map((part) => {
      if (part.text('type') === 'input_text') return part.text('text') ?? '';
      throw part.wrong('type', 'must be input_text in what a tool returned');
    })
    .join('');
}
