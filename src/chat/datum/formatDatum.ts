import { chunkLength } from '../../wire/chunk.js';
import type { Datum } from '../../wire/datum.js';
import { namedTensor } from '../../wire/tensor.js';
import { ValidationError } from '../../wire/tinkerError.js';
import type { Tokenizer } from '../tokenizer/Tokenizer.js';

/** Options of `formatDatum`. */
export interface FormatDatumOptions {
  /** Which tensor colours the tokens. Default `weights`, else `advantages`. */
  readonly key?: string;
  /** Colours for a terminal; without them ⟦brackets⟧ stand around what is trained on and ⟪these⟫ around what is trained against. Default: unless `NO_COLOR` is set. */
  readonly colors?: boolean;
  /** Show line ends as ↵ before they break the line. Default false. */
  readonly lineEnds?: boolean;
}

type Mark = 'for' | 'none' | 'against';

const COLORS: Readonly<Record<Mark, string>> = { for: '\u001B[32m', none: '\u001B[33m', against: '\u001B[31m' };
const RESET = '\u001B[39m';
const BRACKETS: Readonly<Record<Mark, readonly [string, string]>> = {
  for: ['⟦', '⟧'],
  none: ['', ''],
  against: ['⟪', '⟫'],
};

/**
 * A datum as text that shows what is trained on: green where the weight is above 0, yellow at 0, red below. Images and audio appear as
 * `[image: 64 tokens]`. Control characters that the text holds are made visible, so that it cannot steer the terminal.
 *
 * @throws ValidationError for a datum without `target_tokens` or without the tensor of `key`
 */
export function formatDatum(datum: Datum, tokenizer: Tokenizer, options: FormatDatumOptions = {}): string {
  const { colors = !process.env['NO_COLOR'], lineEnds = false } = options;
  const { key = 'weights' in datum.lossFnInputs ? 'weights' : 'advantages' } = options;
  const targets = tensor(datum, 'target_tokens');
  const weights = tensor(datum, key);
  const runs: { readonly mark: Mark; readonly text: string }[] = [];
  let pending: number[] = [];
  let mark: Mark = 'none';
  const flush = (): void => {
    if (pending.length > 0) runs.push({ mark, text: tokenizer.decode(pending) });
    pending = [];
  };
  const add = (token: number, position: number): void => {
    // The weight of a token stands one row up, where it is predicted; nothing predicts the first.
    const weight = position === 0 ? 0 : (weights[position - 1] ?? 0);
    const next: Mark = weight > 0 ? 'for' : weight < 0 ? 'against' : 'none';
    if (next !== mark) flush();
    mark = next;
    pending.push(token);
  };
  let position = 0;
  for (const chunk of datum.modelInput.chunks) {
    if (chunk.type === 'encoded_text') for (const token of chunk.tokens) add(token, position++);
    else {
      const length = chunkLength(chunk);
      flush();
      runs.push({ mark: 'none', text: `[${chunk.type === 'dmel' ? 'audio' : 'image'}: ${length} tokens]` });
      position += length;
    }
  }
  const last = targets[targets.length - 1];
  if (last !== undefined) add(last, position);
  flush();
  return runs.map(({ mark: own, text }) => paint(visible(text, lineEnds), own, colors)).join('');
}

function tensor({ lossFnInputs }: Datum, name: string): ArrayLike<number> {
  const input = lossFnInputs[name];
  if (input === undefined) throw new ValidationError(`the datum has no ${name} to show`);
  const { data, shape } = namedTensor(name, input).toDense();
  if (shape.length !== 1)
    throw new ValidationError(`${name} has shape [${shape.join(', ')}]; only one value per position can be shown`);
  return data;
}

/** Control characters as their pictures; tabs and line ends stay. */
const visible = (text: string, lineEnds: boolean): string =>
  text
    .replace(/\p{Cc}/gu, (control) => {
      if (control === '\t' || control === '\n') return control;
      const code = control.codePointAt(0)!;
      return code < 0x20 ? String.fromCodePoint(0x2400 + code) : code === 0x7f ? '␡' : '�';
    })
    .replaceAll('\n', lineEnds ? '↵\n' : '\n');

function paint(text: string, mark: Mark, colors: boolean): string {
  if (!colors) return `${BRACKETS[mark][0]}${text}${BRACKETS[mark][1]}`;
  // Line by line, so that a pager that cuts lines keeps the colour.
  return text
    .split('\n')
    .map((line) => (line === '' ? '' : `${COLORS[mark]}${line}${RESET}`))
    .join('\n');
}
