import { isRecord } from '../../support/isRecord.js';
import type { Content, Message, ToolCall, ToolSpec } from '../renderers/core/Message.js';
import { type MessageReading, readCall, readMessage, readTools } from '../renderers/core/readMessage.js';
import { parseJson } from '../../support/parseJson.js';

/** A call of a tool, its arguments as JSON text. */
export type ConversationToolCall = ToolCall;

/** One message, in the shape the renderers of `tinker-rx/chat` take. */
export type ConversationMessage = Message;

/** What a row of a chat dataset says. */
export interface Conversation {
  /** What was said, in order; at least one message. */
  readonly messages: readonly ConversationMessage[];
  /** The tools the row declares beside its messages; `toDatums` declares them in the renderer's own words. Absent: none. */
  readonly tools?: readonly ToolSpec[];
}

type Json = Readonly<Record<string, unknown>>;

const SHAREGPT_ROLES: Readonly<Record<string, string>> = {
  human: 'user',
  user: 'user',
  gpt: 'assistant',
  chatgpt: 'assistant',
  bing: 'assistant',
  bard: 'assistant',
  assistant: 'assistant',
  model: 'assistant',
  system: 'system',
  tool: 'tool',
  observation: 'tool',
  function_response: 'tool',
};

/**
 * A row of a chat dataset as a conversation, whichever of the usual forms it has:
 *
 * - messages: `{ messages: [{ role, content }], tools? }`, or just the array, in OpenAI's form: `tool_calls`, `reasoning_content`, `weight`, content as
 *   text or parts, images among them
 * - ShareGPT: `{ conversations: [{ from: 'human' | 'gpt' | …, value }], system?, tools? }`, calls as turns from `function_call`
 * - Alpaca: `{ instruction, input?, output, system?, history? }`
 * - prompt and completion: `{ prompt, completion, tools? }`, each a text or an array of messages
 *
 * A part `{ type: 'image' }` without an image stands for the next of the row's `images`. `unused` is told, once a row, every field that
 * has a value and that nothing reads.
 *
 * @throws Error saying what is missing or wrong; inside a source that makes it a bad row.
 */
export function toConversation(row: unknown, unused: (field: string) => void = () => {}): Conversation {
  const told = new Set<string>();
  const images = isRecord(row) && Array.isArray(row['images']) ? row['images'] : [];
  const reading: Reading = {
    fail: (where, what) => {
      throw new Error(`${where} ${what}`);
    },
    unused: (field) => told.add(field),
    images: images.values(),
  };
  const conversation = read(row, reading);
  // Images that no part stands for would be lost silently.
  if (reading.images.next().done !== true) told.add('images');
  told.forEach(unused);
  return conversation;
}

type Reading = MessageReading & { readonly images: Iterator<unknown> };

function read(row: unknown, reading: Reading): Conversation {
  if (Array.isArray(row)) return { messages: toMessages(row, 'the row', reading) };
  if (!isRecord(row)) throw new Error('expected an object or an array of messages');
  const { messages, conversations, conversation } = row;
  if (Array.isArray(messages)) return withRow(row, ['messages'], toMessages(messages, 'messages', reading), reading);
  if (Array.isArray(conversations)) return fromShareGpt(row, 'conversations', conversations, reading);
  if (Array.isArray(conversation)) return fromShareGpt(row, 'conversation', conversation, reading);
  if ('instruction' in row && 'output' in row) return fromAlpaca(row, reading);
  if ('prompt' in row && 'completion' in row) {
    const both = [
      ...side(row['prompt'], 'user', 'prompt', reading),
      ...side(row['completion'], 'assistant', 'completion', reading),
    ];
    return withRow(row, ['prompt', 'completion'], both, reading);
  }
  throw new Error(
    'expected one of: messages, conversations (ShareGPT), instruction and output (Alpaca), prompt and completion',
  );
}

/** The conversation with what the row says beside its messages. */
function withRow(row: Json, used: readonly string[], messages: readonly Message[], reading: Reading): Conversation {
  for (const [field, value] of Object.entries(row)) {
    if (value != null && !used.includes(field) && field !== 'tools' && field !== 'images') reading.unused?.(field);
  }
  const tools = row['tools'] == null ? [] : readTools(row['tools'], 'tools', reading);
  return tools.length === 0 ? { messages } : { messages, tools };
}

function fromShareGpt(row: Json, field: string, turns: readonly unknown[], reading: Reading): Conversation {
  // Some sets under this name hold messages all the same.
  if (turns.every((turn) => isRecord(turn) && 'role' in turn)) {
    return withRow(row, [field], toMessages(turns, field, reading), reading);
  }
  const messages = turns.map((turn, place): Message => {
    const where = `${field}[${place}]`;
    if (!isRecord(turn)) throw new Error(`${where} must be an object`);
    for (const name of Object.keys(turn)) {
      if (turn[name] != null && !['from', 'value', 'weight'].includes(name)) reading.unused?.(`${field}[].${name}`);
    }
    const from = text(turn['from'], `${where}.from`);
    const value = text(turn['value'], `${where}.value`);
    if (from === 'function_call') return { role: 'assistant', content: '', toolCalls: callsOf(value, where, reading) };
    const role = SHAREGPT_ROLES[from];
    if (role === undefined) throw new Error(`${where}.from is '${from}', which is not a known speaker`);
    const { weight } = turn;
    return toMessage({ role, content: value, ...(weight == null ? {} : { weight }) }, where, reading);
  });
  return withRow(row, [field, 'system', 'system_prompt'], atLeastOne([...system(row), ...messages], field), reading);
}

/** The calls of a `function_call` turn: one as JSON, or a list of them. */
function callsOf(value: string, where: string, reading: Reading): ToolCall[] {
  const calls = parseJson(value);
  if (calls === undefined) throw new Error(`${where}.value is a function call that is not valid JSON`);
  return (Array.isArray(calls) ? calls : [calls]).map((call) => readCall(call, `${where}.value`, reading));
}

function fromAlpaca(row: Json, reading: Reading): Conversation {
  const instruction = text(row['instruction'], 'instruction');
  const input = row['input'] == null ? '' : text(row['input'], 'input');
  const history = Array.isArray(row['history']) ? row['history'] : [];
  const earlier = history.flatMap((turn: unknown, place): Message[] => {
    if (!Array.isArray(turn) || turn.length !== 2)
      throw new Error(`history[${place}] must be a question and an answer`);
    return [
      { role: 'user', content: text(turn[0], `history[${place}][0]`) },
      toMessage({ role: 'assistant', content: text(turn[1], `history[${place}][1]`) }, `history[${place}][1]`, reading),
    ];
  });
  const messages: readonly Message[] = [
    ...system(row),
    ...earlier,
    { role: 'user', content: input === '' ? instruction : `${instruction}\n\n${input}` },
    toMessage({ role: 'assistant', content: text(row['output'], 'output') }, 'output', reading),
  ];
  return withRow(row, ['instruction', 'input', 'output', 'history', 'system', 'system_prompt'], messages, reading);
}

function toMessages(list: readonly unknown[], where: string, reading: Reading): readonly Message[] {
  return atLeastOne(
    list.map((message, place) => toMessage(message, `${where}[${place}]`, reading)),
    where,
  );
}

function toMessage(message: unknown, where: string, reading: Reading): Message {
  const read = readMessage(message, where, reading);
  return { ...read, content: joined(read.content) };
}

/** Parts that are all text as one text, which is how it was written. */
function joined(content: Content): Content {
  if (typeof content === 'string') return content;
  const texts = content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  return texts.length === content.length ? texts.join('') : content;
}

function side(value: unknown, role: string, where: string, reading: Reading): readonly Message[] {
  return Array.isArray(value)
    ? toMessages(value, where, reading)
    : [toMessage({ role, content: text(value, where) }, where, reading)];
}

function system(row: Json): readonly Message[] {
  const value = row['system'] ?? row['system_prompt'];
  return typeof value === 'string' && value !== '' ? [{ role: 'system', content: value }] : [];
}

function atLeastOne<M>(messages: readonly M[], where: string): readonly M[] {
  if (messages.length === 0) throw new Error(`${where} holds no message`);
  return messages;
}

function text(value: unknown, where: string): string {
  if (typeof value !== 'string') throw new Error(`${where} must be a string`);
  return value;
}
