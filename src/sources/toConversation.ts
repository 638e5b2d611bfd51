/** A call of a tool, its arguments as JSON text. */
export interface ConversationToolCall {
  readonly name: string;
  readonly arguments: string;
  readonly id?: string;
}

/** One message, in the shape the renderers of `tinker-rx/chat` take. */
export interface ConversationMessage {
  readonly role: string;
  readonly content: string;
  readonly toolCalls?: readonly ConversationToolCall[];
  readonly toolCallId?: string;
  readonly name?: string;
  readonly trainable?: boolean;
}

export interface Conversation {
  readonly messages: readonly ConversationMessage[];
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
 * - messages: `{ messages: [{ role, content }] }`, OpenAI's `tool_calls` included, or just the array
 * - ShareGPT: `{ conversations: [{ from: 'human' | 'gpt' | …, value }], system? }`
 * - Alpaca: `{ instruction, input?, output, system?, history? }`
 * - prompt and completion: `{ prompt, completion }`, each a text or an array of messages
 *
 * @throws Error saying what is missing or wrong; inside a source that makes it a bad row.
 */
export function toConversation(row: unknown): Conversation {
  if (Array.isArray(row)) return { messages: toMessages(row, 'the row') };
  if (!isObject(row)) throw new Error('expected an object or an array of messages');
  if (Array.isArray(row['messages'])) return { messages: toMessages(row['messages'], 'messages') };
  if (Array.isArray(row['conversations'])) return fromShareGpt(row, row['conversations']);
  if (Array.isArray(row['conversation'])) return fromShareGpt(row, row['conversation']);
  if ('instruction' in row && 'output' in row) return fromAlpaca(row);
  if ('prompt' in row && 'completion' in row) {
    const [prompt, completion] = [row['prompt'], row['completion']];
    return { messages: [...side(prompt, 'user', 'prompt'), ...side(completion, 'assistant', 'completion')] };
  }
  throw new Error(
    'expected one of: messages, conversations (ShareGPT), instruction and output (Alpaca), prompt and completion',
  );
}

function fromShareGpt(row: Json, turns: readonly unknown[]): Conversation {
  // Some sets under this name hold messages all the same.
  if (turns.every((turn) => isObject(turn) && 'role' in turn)) return { messages: toMessages(turns, 'conversations') };
  const messages = turns.map((turn, place): ConversationMessage => {
    if (!isObject(turn)) throw new Error(`conversations[${place}] must be an object`);
    const from = text(turn['from'], `conversations[${place}].from`);
    const role = SHAREGPT_ROLES[from];
    if (role === undefined) throw new Error(`conversations[${place}].from is '${from}', which is no known speaker`);
    return { role, content: text(turn['value'], `conversations[${place}].value`) };
  });
  return { messages: atLeastOne([...system(row), ...messages], 'conversations') };
}

function fromAlpaca(row: Json): Conversation {
  const instruction = text(row['instruction'], 'instruction');
  const input = row['input'] == null ? '' : text(row['input'], 'input');
  const history = Array.isArray(row['history']) ? row['history'] : [];
  const earlier = history.flatMap((turn: unknown, place): ConversationMessage[] => {
    if (!Array.isArray(turn) || turn.length !== 2)
      throw new Error(`history[${place}] must be a question and an answer`);
    return [
      { role: 'user', content: text(turn[0], `history[${place}][0]`) },
      { role: 'assistant', content: text(turn[1], `history[${place}][1]`) },
    ];
  });
  return {
    messages: [
      ...system(row),
      ...earlier,
      { role: 'user', content: input === '' ? instruction : `${instruction}\n\n${input}` },
      { role: 'assistant', content: text(row['output'], 'output') },
    ],
  };
}

function toMessages(list: readonly unknown[], where: string): readonly ConversationMessage[] {
  return atLeastOne(
    list.map((message, place) => toMessage(message, `${where}[${place}]`)),
    where,
  );
}

function toMessage(message: unknown, where: string): ConversationMessage {
  if (!isObject(message)) throw new Error(`${where} must be an object`);
  const calls = message['tool_calls'] ?? message['toolCalls'];
  const callId = message['tool_call_id'] ?? message['toolCallId'];
  const name = message['name'];
  const trainable = message['trainable'];
  return {
    role: text(message['role'], `${where}.role`),
    content: content(message['content'], Array.isArray(calls), `${where}.content`),
    ...(Array.isArray(calls) ? { toolCalls: calls.map((call, at) => toCall(call, `${where}.tool_calls[${at}]`)) } : {}),
    ...(typeof callId === 'string' ? { toolCallId: callId } : {}),
    ...(typeof name === 'string' ? { name } : {}),
    ...(typeof trainable === 'boolean' ? { trainable } : {}),
  };
}

function toCall(call: unknown, where: string): ConversationToolCall {
  if (!isObject(call)) throw new Error(`${where} must be an object`);
  const inner = isObject(call['function']) ? call['function'] : call;
  const given = inner['arguments'] ?? '{}';
  const id = call['id'];
  return {
    name: text(inner['name'], `${where}.name`),
    arguments: typeof given === 'string' ? given : JSON.stringify(given),
    ...(typeof id === 'string' ? { id } : {}),
  };
}

/** Text, or parts that are all text. A message that only calls tools may have none. */
function content(value: unknown, mayBeAbsent: boolean, where: string): string {
  if (value == null && mayBeAbsent) return '';
  if (!Array.isArray(value)) return text(value, where);
  return value
    .map((part: unknown, place) => {
      if (typeof part === 'string') return part;
      if (!isObject(part) || (part['type'] ?? 'text') !== 'text') {
        throw new Error(`${where}[${place}] is not text; build such messages yourself with fromJsonl and map`);
      }
      return text(part['text'], `${where}[${place}].text`);
    })
    .join('');
}

function side(value: unknown, role: string, where: string): readonly ConversationMessage[] {
  return Array.isArray(value) ? toMessages(value, where) : [{ role, content: text(value, where) }];
}

function system(row: Json): readonly ConversationMessage[] {
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

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
