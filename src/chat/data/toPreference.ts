import { isRecord } from '../../support/isRecord.js';
import type { ToolSpec } from '../renderers/core/Message.js';
import { type ConversationMessage, toConversation } from './toConversation.js';

/** Two conversations that differ in how they end, and which end was preferred. */
export interface Preference {
  /** The conversation that ends with the preferred answer. */
  readonly chosen: readonly ConversationMessage[];
  /** The conversation that ends with the other answer. */
  readonly rejected: readonly ConversationMessage[];
  /** The tools the row declares beside its messages; `toPairs` declares them in the renderer's own words. Absent: none. */
  readonly tools?: readonly ToolSpec[];
}

type Json = Readonly<Record<string, unknown>>;
type Messages = readonly ConversationMessage[];

/**
 * A row of a preference dataset, whichever of the usual forms it has:
 *
 * - `{ prompt, chosen, rejected }`, each a text or an array of messages; the answers may repeat the prompt, as those of binarized UltraFeedback do.
 *   `question`, `instruction` (with `input`, as Alpaca's) or `input` instead of `prompt`, a `system` text and `tools` are understood
 * - `{ messages, chosen, rejected }` and `{ conversations, chosen, rejected }`: the history, and two answers
 * - OpenAI's: `{ input: { messages, tools }, preferred_output, non_preferred_output }`
 * - Anthropic's HH: `{ chosen, rejected }`, each a transcript of `Human:` and `Assistant:`
 * - UltraFeedback's own: `{ instruction, completions: [{ response, overall_score }] }`: the best answer and the worst one
 *
 * @throws Error saying what is missing or wrong; inside a source that makes it a bad row.
 */
export function toPreference(row: unknown): Preference {
  if (!isRecord(row)) throw new Error('expected an object with chosen and rejected');
  const { input, preferred_output: preferred, non_preferred_output: other } = row;
  if (isRecord(input) && preferred !== undefined) return toPreference({ ...input, chosen: preferred, rejected: other });
  const completions = row['completions'];
  if (Array.isArray(completions)) return fromScored(row, completions);
  if (row['chosen'] == null || row['rejected'] == null)
    throw new Error('expected chosen and rejected, or completions with scores');
  const history = historyOf(row);
  const side = (which: 'chosen' | 'rejected'): Messages =>
    history.some(isSpoken) ? answered(history, row[which], which) : under(history, whole(row[which], which));
  return checked({ chosen: side('chosen'), rejected: side('rejected') }, row);
}

/** What both answers answer; nothing, or a system message only, where they carry it themselves. */
function historyOf(row: Json): Messages {
  const told = row['messages'] ?? row['conversations'] ?? row['conversation'];
  const system = row['system'] ?? row['system_prompt'];
  const before = typeof system === 'string' && system !== '' ? [{ role: 'system', content: system }] : [];
  if (Array.isArray(told)) return [...before, ...withoutAnswer(messagesOf(told))];
  const prompt = promptOf(row);
  if (Array.isArray(prompt)) return [...before, ...messagesOf(prompt)];
  if (typeof prompt !== 'string') return before;
  const transcript = fromTranscript(prompt);
  return [...before, ...(transcript ?? [{ role: 'user', content: prompt }])];
}

function promptOf(row: Json): unknown {
  const { prompt, question, instruction, input } = row;
  if (typeof instruction === 'string' && typeof input === 'string' && input !== '')
    return prompt ?? question ?? `${instruction}\n\n${input}`;
  return prompt ?? question ?? instruction ?? input;
}

/** Some sets keep the whole chosen conversation beside the two answers: binarized UltraFeedback, as `messages`. */
function withoutAnswer(messages: Messages): Messages {
  return messages.slice(0, messages.findLastIndex(({ role }) => role !== 'assistant') + 1);
}

function answered(history: Messages, answer: unknown, where: string): Messages {
  const given = typeof answer === 'string' ? { role: 'assistant', content: answer } : answer;
  const list = isRecord(given) ? [given] : given;
  if (!Array.isArray(list)) throw new Error(`${where} must be a text, a message or an array of messages`);
  const messages = messagesOf(list);
  // Some sets repeat the prompt before the answer, some without its system message.
  const spoken = messages.filter(isSpoken);
  const repeats = spoken.length > 1 && same(history.find(isSpoken)!, spoken[0]!);
  return repeats ? under(history, messages) : [...history, ...messages];
}

/** A conversation under the system message of its history, where that has one. */
function under(history: Messages, messages: Messages): Messages {
  const system = history.filter((message) => !isSpoken(message));
  return system.length === 0 ? messages : [...system, ...messages.filter(isSpoken)];
}

const isSpoken = ({ role }: ConversationMessage): boolean => role !== 'system';

/** An answer that carries what it answers. */
function whole(answer: unknown, where: string): Messages {
  if (Array.isArray(answer)) return messagesOf(answer);
  if (typeof answer !== 'string') throw new Error(`${where} must be a transcript or an array of messages`);
  const transcript = fromTranscript(answer);
  if (transcript === undefined)
    throw new Error(`${where} has no prompt: give one, or a transcript of "Human:" and "Assistant:"`);
  return transcript;
}

const TURN = /(?:^|\n\n)(Human|Assistant):/;

/** Anthropic's transcripts: `\n\nHuman: … \n\nAssistant: …`. Undefined if the text is not one. */
function fromTranscript(text: string): Messages | undefined {
  const [before = '', ...parts] = text.split(TURN);
  if (parts.length === 0 || before.trim() !== '') return undefined;
  const messages: ConversationMessage[] = [];
  for (let place = 0; place < parts.length; place += 2) {
    const role = parts[place] === 'Human' ? 'user' : 'assistant';
    const content = parts[place + 1]!.trim();
    // A prompt may end with the word that the answer comes after.
    if (content !== '' || place + 2 < parts.length) messages.push({ role, content });
  }
  return messages;
}

function fromScored(row: Json, completions: readonly unknown[]): Preference {
  const history = historyOf(row);
  if (!history.some(isSpoken)) throw new Error('completions need an instruction or a prompt');
  const scored = completions.map((completion, place) => {
    const { response, overall_score: overall, score = overall } = isRecord(completion) ? completion : {};
    if (typeof response !== 'string') throw new Error(`completions[${place}].response must be a string`);
    const number = typeof score === 'string' ? Number(score) : score;
    if (typeof number !== 'number' || Number.isNaN(number))
      throw new Error(`completions[${place}].overall_score must be a number`);
    return { response, score: number };
  });
  const sorted = scored.toSorted((a, b) => b.score - a.score);
  const [best, worst] = [sorted[0], sorted.at(-1)];
  if (best === undefined || worst === undefined || best.score === worst.score)
    throw new Error('completions need two answers with different scores');
  return checked(
    {
      chosen: answered(history, best.response, 'chosen'),
      rejected: answered(history, worst.response, 'rejected'),
    },
    row,
  );
}

/** The preference, with the tools of its row. */
function checked(preference: Preference, { tools }: Json): Preference {
  for (const side of ['chosen', 'rejected'] as const) {
    const last = preference[side].at(-1);
    if (last?.role !== 'assistant') throw new Error(`${side} must end with a message of the assistant`);
  }
  if (tools == null) return preference;
  const { tools: declared } = toConversation({ messages: preference.chosen, tools });
  return declared === undefined ? preference : { ...preference, tools: declared };
}

/** Messages, also in ShareGPT's form. */
function messagesOf(list: readonly unknown[]): Messages {
  const isShareGpt = list.length > 0 && list.every((each) => isRecord(each) && 'from' in each && 'value' in each);
  return toConversation(isShareGpt ? { conversations: list } : { messages: list }).messages;
}

const same = (a: ConversationMessage, b: ConversationMessage): boolean => a.role === b.role && a.content === b.content;
