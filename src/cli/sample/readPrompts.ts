import { createReadStream, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { type Observable, of } from 'rxjs';
import type { Message, ToolSpec } from '../../chat/renderers/Message.js';
import { fromRowBatches } from '../../sources/fromRowBatches.js';
import { toConversation } from '../../sources/toConversation.js';
import { CliError } from '../CliError.js';
import type { Context } from '../context.js';

/** What to sample for: a conversation, text to go on with, or a line that is neither. `source` is what the user wrote. */
export type Prompt = { readonly source: unknown; readonly alone?: boolean; readonly line?: number } & (
  | { readonly kind: 'chat'; readonly messages: readonly Message[]; readonly tools?: readonly ToolSpec[] }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'bad'; readonly reason: string }
);

export interface PromptOptions {
  readonly words: readonly string[];
  readonly file?: string;
  readonly whole?: boolean;
  readonly raw?: boolean;
  readonly system?: string;
}

export interface PromptSource {
  readonly prompts: Observable<Prompt>;
  /** What they are read from, for messages: a file's name, or `stdin`; undefined for words of the command line. */
  readonly name: string | undefined;
  /** Which share of a file the prompts so far are, from 0 to 1; undefined where there is no file. */
  readonly share: () => number | undefined;
}

/** Prompts from the command line, a file, or standard input, read as demand allows. */
export function readPrompts({ stdin }: Context, options: PromptOptions): PromptSource {
  const { words, file, whole = false } = options;
  if (words.length > 0 && file !== undefined) throw new CliError('Give a prompt or --file, not both', { exitCode: 2 });
  if (words.length > 0)
    return {
      prompts: of({ ...textPrompt(words.join(' '), options), alone: true }),
      name: undefined,
      share: () => undefined,
    };
  if (file === undefined && stdin.isTTY === true)
    throw new CliError('No prompt', { details: 'Give one, or --file, or pipe prompts in.', exitCode: 2 });
  const isFile = file !== undefined && file !== '-';
  // Looked at before the service is: who misspelt a name need not wait for a model.
  const totalBytes = isFile ? statSync(file).size : 0;
  const open = () => (isFile ? createReadStream(file) : stdin);
  let bytes = 0;
  const onLine = (line: string) => (bytes += Buffer.byteLength(line) + 1);
  return {
    name: isFile ? file : 'stdin',
    prompts: fromRowBatches(() => (whole ? wholePrompt(open(), options) : linePrompts(open(), options, onLine))),
    share: () => (whole || totalBytes === 0 ? undefined : Math.min(1, bytes / totalBytes)),
  };
}

async function* wholePrompt(input: Readable, options: PromptOptions): AsyncGenerator<readonly Prompt[]> {
  let text = '';
  for await (const chunk of input as AsyncIterable<Buffer | string>) text += chunk.toString();
  yield [{ ...textPrompt(text.replace(/\n$/, ''), options), alone: true }];
}

async function* linePrompts(
  input: Readable,
  options: PromptOptions,
  onLine: (line: string) => void,
): AsyncGenerator<readonly Prompt[]> {
  // An error of the stream is none of its lines.
  const failed = new Promise<never>((_, reject) => input.once('error', reject));
  failed.catch(() => {});
  const lines = createInterface({ input, crlfDelay: Infinity })[Symbol.asyncIterator]();
  try {
    for (let line = 1; ; line++) {
      const next = await Promise.race([lines.next(), failed]);
      if (next.done === true) return;
      onLine(next.value);
      if (next.value.trim() !== '') yield [{ ...linePrompt(next.value, options), line }];
    }
  } finally {
    input.destroy();
  }
}

/** One line. One that is no prompt does not stop the others. */
function linePrompt(line: string, options: PromptOptions): Prompt {
  if (!/^\s*[{["]/.test(line)) return textPrompt(line, options);
  let row: unknown;
  try {
    row = JSON.parse(line);
  } catch {
    // Text may begin with a bracket or a quotation mark; an object that is broken is more likely a mistake.
    if (!line.trimStart().startsWith('{')) return textPrompt(line, options);
    return { kind: 'bad', reason: 'not JSON', source: line };
  }
  if (typeof row === 'string') return textPrompt(row, options);
  const { prompt, tools } = row as { readonly prompt?: unknown; readonly tools?: unknown };
  if (typeof prompt === 'string') return { ...textPrompt(prompt, options), source: row };
  try {
    const conversation = toConversation(Array.isArray(prompt) ? { messages: prompt, tools } : row);
    return { kind: 'chat', ...conversation, messages: withSystem(conversation.messages, options), source: row };
  } catch (error) {
    return { kind: 'bad', reason: (error as Error).message, source: row };
  }
}

const textPrompt = (text: string, options: PromptOptions): Prompt =>
  options.raw === true
    ? { kind: 'text', text, source: text }
    : { kind: 'chat', messages: withSystem([{ role: 'user', content: text }], options), source: text };

const withSystem = (messages: readonly Message[], { system }: PromptOptions): readonly Message[] =>
  system === undefined ? messages : [{ role: 'system', content: system }, ...messages];
