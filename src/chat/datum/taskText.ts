import type { Message } from '../renderers/core/Message.js';

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (task: unknown): Fields => (typeof task === 'object' && task !== null ? (task as Fields) : {});

/** The fields that may hold what is asked as text; the first one that does counts. */
export const PROMPT_FIELDS = ['prompt', 'question', 'input', 'text'] as const;

/** What a task asks, by the usual names. @throws TypeError naming the fields it has instead */
export function promptOf(task: unknown): string | readonly Message[] {
  if (typeof task === 'string') return task;
  const fields = fieldsOf(task);
  const { messages, prompt } = fields;
  for (const list of [messages, prompt]) if (Array.isArray(list)) return asked(list as readonly Message[]);
  for (const name of PROMPT_FIELDS) if (typeof fields[name] === 'string') return fields[name];
  const names = Object.keys(fields).join(', ');
  throw new TypeError(`a task has none of messages, prompt, question, input and text, but ${names || 'no fields'}`);
}

/** A conversation that ends with the answer is asked up to it. */
const asked = (messages: readonly Message[]): readonly Message[] =>
  messages.at(-1)?.role === 'assistant' ? messages.slice(0, -1) : messages;

/** What a task expects, by the usual names; undefined if it does not tell. */
export function expectedOf(task: unknown): string | undefined {
  const { expected, answer, target, label, messages } = fieldsOf(task);
  const found = [expected, answer, target, label].find((value) => value !== undefined && value !== null);
  if (found !== undefined) return typeof found === 'object' ? JSON.stringify(found) : `${found as string | number}`;
  const last = Array.isArray(messages) ? (messages as readonly Message[]).at(-1) : undefined;
  return last?.role === 'assistant' && typeof last.content === 'string' ? last.content : undefined;
}

/** What a task asks as text, for people and for scorers; empty if it is not told by the usual names. */
export function inputText(task: unknown): string {
  let found: string | readonly Message[];
  try {
    found = promptOf(task);
  } catch {
    return '';
  }
  if (typeof found === 'string') return found;
  const text = ({ content }: Message) => (typeof content === 'string' ? content : JSON.stringify(content));
  return found.length === 1 ? text(found[0]!) : found.map((each) => `${each.role}: ${text(each)}`).join('\n');
}
