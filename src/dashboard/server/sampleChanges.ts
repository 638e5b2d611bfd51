import { ModelInput } from '../../wire/modelInput.js';
import type { SampledSequence, SampleResponse } from '../../wire/sampling.js';
import type { Change } from '../state/changes.js';

/** A result to show: what `sampleFrom` emits is one. */
export interface SampleToShow {
  /** The sample. */
  readonly response: SampleResponse;
  /** What was asked: text, tokens, or something with a `prompt`. */
  readonly item?: unknown;
  /** What was sampled from. Default: not shown. */
  readonly prompt?: ModelInput | string;
  /** One for all sequences, or one each. */
  readonly reward?: number;
  /** The reward of each sequence. Default: none. */
  readonly rewards?: ArrayLike<number>;
  /** The run it belongs to. */
  readonly run?: string;
}

/** How samples are shown on the page. */
export interface ShowSamplesOptions {
  /** Tokens to text: a tokenizer's `decode`. Default: the numbers, which are also shown where it throws. */
  readonly decode?: (tokens: ArrayLike<number>) => string;
  /** The run they belong to. Default: none. */
  readonly run?: string;
}

const SHOWN_TOKENS = 2000;
const SHOWN_PROMPT = 4000;
/** No character takes more tokens than its UTF-8 takes bytes. */
const MOST_TOKENS_A_CHARACTER = 4;

/** What a result of sampling changes in the state of a dashboard: a sample for each sequence. */
export function sampleChanges(
  now: () => number,
  nextId: () => number,
  { decode: given = numbers, run }: ShowSamplesOptions = {},
): (shown: SampleToShow) => Extract<Change, { readonly kind: 'sample' }>[] {
  // What is only looked at must not end: tokens that cannot be decoded are shown as numbers.
  const decode = (tokens: ArrayLike<number>): string => {
    try {
      return String(given(tokens));
    } catch {
      return numbers(tokens);
    }
  };
  return (shown) => {
    const prompt = promptText(shown, decode);
    const of = shown.run ?? run;
    return shown.response.sequences.map((sequence, place) => {
      const reward = shown.rewards?.[place] ?? shown.reward;
      return {
        kind: 'sample',
        sample: {
          id: nextId(),
          atMs: now(),
          prompt,
          length: sequence.tokens.length,
          stopReason: sequence.stopReason,
          ...piecesOf(sequence, decode),
          ...(of === undefined ? {} : { run: of }),
          ...(reward === undefined ? {} : { reward }),
        },
      };
    });
  };
}

/** The text in pieces that can be shown each on its own: tokens that only make sense together stay together. */
function piecesOf(
  { tokens, logprobs }: Pick<SampledSequence, 'tokens' | 'logprobs'>,
  decode: (tokens: ArrayLike<number>) => string,
): { pieces: string[]; tokens: (number | number[])[]; logprobs?: (number | null)[] } {
  const pieces: string[] = [];
  const ids: (number | number[])[] = [];
  const sums: (number | null)[] = [];
  const end = Math.min(tokens.length, SHOWN_TOKENS);
  for (let start = 0; start < end;) {
    let size = 1;
    let text = decode(tokens.subarray(start, start + 1));
    while (text.includes('\uFFFD') && size < MOST_TOKENS_A_CHARACTER && start + size < end) {
      text = decode(tokens.subarray(start, start + ++size));
    }
    // Invalid UTF-8 bytes stay single, so that one of them does not swallow what follows.
    if (text.includes('\uFFFD')) text = decode(tokens.subarray(start, start + (size = 1)));
    pieces.push(text);
    ids.push(size === 1 ? tokens[start]! : Array.from(tokens.subarray(start, start + size)));
    const sum = logprobs?.subarray(start, start + size).reduce((total, logprob) => total + logprob, 0) ?? NaN;
    sums.push(Number.isFinite(sum) ? Math.round(sum * 1000) / 1000 : null);
    start += size;
  }
  return { pieces, tokens: ids, ...(logprobs === undefined ? {} : { logprobs: sums }) };
}

function promptText(shown: SampleToShow, decode: (tokens: ArrayLike<number>) => string): string {
  const given = shown.prompt ?? shown.item;
  const prompt = typeof given === 'object' && given !== null && 'prompt' in given ? given.prompt : given;
  const text = prompt instanceof ModelInput ? inputText(prompt, decode) : typeof prompt === 'string' ? prompt : '';
  return text.length <= SHOWN_PROMPT ? text : `…${text.slice(-SHOWN_PROMPT)}`;
}

function inputText(input: ModelInput, decode: (tokens: ArrayLike<number>) => string): string {
  return input.chunks
    .map((chunk) => (chunk.type === 'encoded_text' ? decode(chunk.tokens) : `[${chunk.type}]`))
    .join('');
}

const numbers = (tokens: ArrayLike<number>): string => Array.from(tokens, (token) => `${token} `).join('');
