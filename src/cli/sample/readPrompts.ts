import { constants, isUtf8 } from 'node:buffer';
import { statSync } from 'node:fs';
import { concat, concatMap, defer, from, type Observable, of } from 'rxjs';
import type { Message, ToolSpec } from '../../chat/renderers/core/Message.js';
import { keepGate } from '../../operators/pressure/keepGate.js';
import { fromRowBatches } from '../../sources/fromRowBatches.js';
import { LineSplitter, type Line } from '../../sources/reading/lineSplitter.js';
import { type ByteCount, readBytes, withoutCompression } from '../../sources/reading/readBytes.js';
import { readStream } from '../../sources/reading/readStream.js';
import { isRecord } from '../../support/isRecord.js';
import { messageOf } from '../../support/messageOf.js';
import { originOf } from '../../support/rows/rowOrigin.js';
import type { SourceEvent } from '../../sources/RowOptions.js';
import { PROMPT_FIELDS } from '../../chat/datum/taskText.js';
import { toConversation } from '../../chat/data/toConversation.js';
import { CliError } from '../CliError.js';
import type { Context } from '../context.js';
import { parseJson } from '../../support/parseJson.js';

/** A prompt: a conversation, text to continue, or a line that is neither. `source` is what the user wrote. */
export type Prompt = { readonly source: unknown; readonly alone?: boolean; readonly line?: number } & (
  | { readonly kind: 'chat'; readonly messages: readonly Message[]; readonly tools?: readonly ToolSpec[] }
  | { readonly kind: 'text'; readonly text: string }
  // `isUnknown`: none of the row's fields is one that prompts usually are in.
  | { readonly kind: 'bad'; readonly reason: string; readonly isUnknown?: true }
);

export interface PromptOptions {
  readonly words: readonly string[];
  readonly file?: string;
  readonly whole?: boolean;
  readonly raw?: boolean;
  readonly system?: string;
  /** The field of a row that holds its prompt. Default: the usual names. */
  readonly column?: string;
}

export interface PromptSource {
  readonly prompts: Observable<Prompt>;
  /** What they are read from, for messages: a file's name, or `stdin`; undefined for words of the command line. */
  readonly name: string | undefined;
  /** Which share of a file the prompts so far are, from 0 to 1; undefined if there is no file. */
  readonly share: () => number | undefined;
}

/** Prompts from the command line, a file, or standard input, read as demand allows. */
export function readPrompts({ stdin }: Context, options: PromptOptions): PromptSource {
  const { words, file, whole = false } = options;
  if (words.length > 0 && file !== undefined) throw new CliError('Give a prompt or --file, not both', { exitCode: 2 });
  if (words.join('').trim() !== '')
    return {
      prompts: of({ ...textPrompt(words.join(' '), options), alone: true }),
      name: undefined,
      share: () => undefined,
    };
  if (words.length > 0 || (file === undefined && stdin.isTTY === true))
    throw new CliError('No prompt', { details: 'Give one, or --file, or pipe prompts in.', exitCode: 2 });
  const path = file === '-' ? undefined : file;
  // Looked at before the service is: who misspelt a name need not wait for a model.
  const stats = path === undefined ? undefined : statSync(path);
  if (stats?.isDirectory() === true) throw new CliError(`${path}: is a folder`);
  const name = path ?? 'stdin';
  const count: ByteCount = { bytes: 0, totalBytes: undefined };
  const open = (signal: AbortSignal) =>
    path === undefined ? readStream(name, stdin, signal, count) : readBytes(path, signal, count);
  const share = () => (whole || !count.totalBytes ? undefined : Math.min(1, count.bytes / count.totalBytes));
  if (whole) return { name, share, prompts: fromRowBatches((signal) => wholePrompt(open(signal), name, options)) };
  if (path !== undefined && /\.(json|csv|tsv|parquet)$/i.test(withoutCompression(path)))
    return { name, share, prompts: rowPrompts(path, options, count) };
  // By lines where they are all there is in a file: it is read in large pieces, long before they are asked.
  let lineBytes = 0;
  const onLine = (text: string) => (lineBytes += Buffer.byteLength(text) + 1);
  const isPlain = stats !== undefined && withoutCompression(name) === name;
  return {
    name,
    share: isPlain ? () => Math.min(1, lineBytes / Math.max(1, stats.size)) : share,
    prompts: fromRowBatches((signal) => linePrompts(open(signal), options, onLine)),
  };
}

async function* wholePrompt(
  chunks: AsyncIterable<Buffer>,
  name: string,
  options: PromptOptions,
): AsyncGenerator<readonly Prompt[]> {
  const pieces: Buffer[] = [];
  for await (const chunk of chunks) pieces.push(chunk);
  const bytes = Buffer.concat(pieces);
  if (!isUtf8(bytes)) throw new CliError(`${name}: not UTF-8`);
  const text = bytes
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .replace(/\r?\n$/, '');
  if (text.trim() !== '') yield [{ ...textPrompt(text, options), alone: true }];
}

async function* linePrompts(
  chunks: AsyncIterable<Buffer>,
  options: PromptOptions,
  onLine: (text: string) => void,
): AsyncGenerator<Iterable<Prompt>> {
  const splitter = new LineSplitter(constants.MAX_STRING_LENGTH);
  function* promptsOf(lines: Iterable<Line>): Generator<Prompt> {
    for (const { number: line, text, problem } of lines) {
      onLine(text ?? '');
      if (text === undefined) yield { kind: 'bad', reason: problem!, source: null, line };
      else yield { ...linePrompt(text, options), line };
    }
  }
  for await (const chunk of chunks) yield promptsOf(splitter.push(chunk));
  yield promptsOf(splitter.end());
}

/** The rows of a file without lines, in order. Rows that cannot be read become bad prompts. */
function rowPrompts(path: string, options: PromptOptions, count: ByteCount): Observable<Prompt> {
  return defer(() => {
    let bad: Prompt[] = [];
    const takeBad = () => {
      const taken = bad;
      bad = [];
      return taken;
    };
    const onEvent = (event: SourceEvent) => {
      if (event.type === 'source-progress') ({ bytes: count.bytes, totalBytes: count.totalBytes } = event);
      if (event.type === 'row-skipped') bad.push({ kind: 'bad', reason: event.reason, source: null, line: event.line });
    };
    const decode = (row: unknown) => rowPrompt(row, options);
    // The reader of Parquet is large, and most prompts are lines.
    const rows = from(import('../../sources/reading/rowsOfFile.js')).pipe(
      keepGate(),
      concatMap(({ rowsOfFile }) => rowsOfFile<Prompt>(path, { decode, onBadRow: 'skip', onEvent })),
    );
    const inPlace = rows.pipe(concatMap((prompt) => [...takeBad(), { ...prompt, line: originOf(prompt)!.line }]));
    return concat(inPlace, defer(takeBad));
  });
}

/** One line. One that is no prompt does not stop the others. */
function linePrompt(line: string, options: PromptOptions): Prompt {
  if (line.includes('\0'))
    return { kind: 'bad', reason: 'holds zero bytes: the file is not text in UTF-8', source: null };
  if (!/^\s*[{["]/.test(line)) return textPrompt(line, options);
  const row = parseJson(line);
  if (row !== undefined) return rowPrompt(row, options);
  // Text may begin with a bracket or a quotation mark; an object that is broken is more likely a mistake.
  if (!line.trimStart().startsWith('{')) return textPrompt(line, options);
  return { kind: 'bad', reason: 'not JSON', source: line };
}

/** One row: a text, the column that was asked for, `{prompt}` or another of the usual names, or a conversation in any form that training takes. */
function rowPrompt(row: unknown, options: PromptOptions): Prompt {
  if (typeof row === 'string') return textPrompt(row, options);
  const fields = isRecord(row) ? row : {};
  const { column } = options;
  const names = column === undefined ? ('instruction' in fields ? [] : PROMPT_FIELDS) : [column];
  const name = names.find((each) => typeof fields[each] === 'string');
  if (name !== undefined) return { ...textPrompt(fields[name] as string, options), source: row };
  const has = `its columns: ${Object.keys(fields).join(', ') || 'none'}`;
  if (column !== undefined) return { kind: 'bad', reason: `no text in column ${column}; ${has}`, source: row };
  try {
    const { prompt, tools } = fields;
    const conversation = toConversation(Array.isArray(prompt) ? { messages: prompt, tools } : row);
    return { kind: 'chat', ...conversation, messages: withSystem(conversation.messages, options), source: row };
  } catch (error) {
    if (!isRecord(row) || KNOWN.some((each) => each in row))
      return { kind: 'bad', reason: messageOf(error), source: row };
    const reason = `no column of prompts: none of messages, ${PROMPT_FIELDS.join(', ')}; ${has}`;
    return { kind: 'bad', reason, isUnknown: true, source: row };
  }
}

/** Fields that say what form a row has; a row with none of them has its prompts under another name. */
const KNOWN: readonly string[] = [...PROMPT_FIELDS, 'messages', 'conversations', 'conversation', 'instruction'];

const textPrompt = (text: string, options: PromptOptions): Prompt =>
  options.raw === true
    ? { kind: 'text', text, source: text }
    : { kind: 'chat', messages: withSystem([{ role: 'user', content: text }], options), source: text };

const withSystem = (messages: readonly Message[], { system }: PromptOptions): readonly Message[] =>
  system === undefined ? messages : [{ role: 'system', content: system }, ...messages];
