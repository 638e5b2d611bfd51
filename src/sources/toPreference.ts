import { type ConversationMessage, toConversation } from './toConversation.js';

/** Two conversations that differ in how they end, and which end was preferred. */
export interface Preference {
  readonly chosen: readonly ConversationMessage[];
  readonly rejected: readonly ConversationMessage[];
}

type Json = Readonly<Record<string, unknown>>;
type Messages = readonly ConversationMessage[];

/**
 * A row of a preference dataset, whichever of the usual forms it has:
 *
 * - `{ prompt, chosen, rejected }`, each a text or an array of messages; the answers may repeat the prompt, as UltraFeedback's do.
 *   `question` or `instruction` in place of `prompt`, and a `system` text, are understood
 * - `{ messages, chosen, rejected }` and `{ conversations, chosen, rejected }`: the history, and two answers
 * - Anthropic's HH: `{ chosen, rejected }`, each a transcript of `Human:` and `Assistant:`
 * - UltraFeedback's own: `{ instruction, completions: [{ response, overall_score }] }`: the best answer and the worst one
 *
 * @throws Error saying what is missing or wrong; inside a source that makes it a bad row.
 */
export function toPreference(row: unknown): Preference {
  if (!isObject(row)) throw new Error('expected an object with chosen and rejected');
  const completions = row['completions'];
  if (Array.isArray(completions)) return fromScored(row, completions);
  if (!('chosen' in row && 'rejected' in row))
    throw new Error('expected chosen and rejected, or completions with scores');
  const [chosen, rejected] = [row['chosen'], row['rejected']];
  const history = historyOf(row);
  if (history === undefined) return checked({ chosen: whole(chosen, 'chosen'), rejected: whole(rejected, 'rejected') });
  return checked({ chosen: answered(history, chosen, 'chosen'), rejected: answered(history, rejected, 'rejected') });
}

/** What both answers answer; undefined where they carry it themselves. */
function historyOf(row: Json): Messages | undefined {
  const told = row['messages'] ?? row['conversations'] ?? row['conversation'];
  const system = row['system'] ?? row['system_prompt'];
  const before = typeof system === 'string' && system !== '' ? [{ role: 'system', content: system }] : [];
  if (Array.isArray(told)) return [...before, ...messagesOf(told)];
  const prompt = row['prompt'] ?? row['question'] ?? row['instruction'];
  if (Array.isArray(prompt)) return [...before, ...messagesOf(prompt)];
  if (typeof prompt !== 'string') return undefined;
  const transcript = fromTranscript(prompt);
  return [...before, ...(transcript ?? [{ role: 'user', content: prompt }])];
}

function answered(history: Messages, answer: unknown, where: string): Messages {
  if (typeof answer === 'string') return [...history, { role: 'assistant', content: answer }];
  const list = isObject(answer) ? [answer] : answer;
  if (!Array.isArray(list)) throw new Error(`${where} must be a text, a message or an array of messages`);
  const messages = messagesOf(list);
  // Some sets repeat the prompt before the answer, some without its system message.
  const spoken = history.filter(({ role }) => role !== 'system');
  const starts = messages.filter(({ role }) => role !== 'system');
  const repeats = starts.length > spoken.length && spoken.every((message, place) => same(message, starts[place]!));
  if (!repeats) return [...history, ...messages];
  return [...history, ...starts.slice(spoken.length)];
}

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

/** Anthropic's transcripts: `\n\nHuman: … \n\nAssistant: …`. Undefined where a text is none. */
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
  if (history === undefined) throw new Error('completions need an instruction or a prompt');
  const scored = completions.map((completion, place) => {
    const { response, overall_score: overall, score = overall } = isObject(completion) ? completion : {};
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
  return checked({
    chosen: answered(history, best.response, 'chosen'),
    rejected: answered(history, worst.response, 'rejected'),
  });
}

function checked(preference: Preference): Preference {
  for (const side of ['chosen', 'rejected'] as const) {
    const last = preference[side].at(-1);
    if (last?.role !== 'assistant') throw new Error(`${side} must end with a message of the assistant`);
  }
  return preference;
}

/** Messages, also in ShareGPT's form. */
function messagesOf(list: readonly unknown[]): Messages {
  const isShareGpt = list.length > 0 && list.every((each) => isObject(each) && 'from' in each && 'value' in each);
  return toConversation(isShareGpt ? { conversations: list } : { messages: list }).messages;
}

const same = (a: ConversationMessage, b: ConversationMessage): boolean => a.role === b.role && a.content === b.content;

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
