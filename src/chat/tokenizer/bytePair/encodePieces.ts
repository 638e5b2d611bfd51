import { BYTE_OF_CHARACTER } from '../../../support/byteAlphabet.js';
import { BytePairEncoder } from './BytePairEncoder.js';
import { createLibrary, splitPattern, type Library } from '../library.js';
import { PieceCache, type PieceTokens } from './PieceCache.js';
import type { StepJson, TokenizerJson } from '../tokenizerFiles.js';

/** A model with nothing in it, for instances of which only the other steps are wanted. */
export const EMPTY_MODEL = { type: 'BPE', vocab: {}, merges: [] };

type Splitter = (text: string) => string[];

/** tokenizer.json with every step that the library insists on, and without added tokens. */
export const withAllSteps = (json: TokenizerJson): object => ({
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  decoder: null,
  ...json,
  added_tokens: [],
});

/** A library instance without added tokens, and the encoder of pieces that stands in for its model if there is one. */
export interface PlainLibrary {
  readonly library: Library;
  readonly pairs: BytePairEncoder | undefined;
}

/** Throws what the library throws on a tokenizer.json that it cannot read. */
export function createPlainLibrary(json: TokenizerJson, config: object): PlainLibrary {
  const isSplit = splitSteps(json.pre_tokenizer) !== undefined;
  const pairs = isSplit ? BytePairEncoder.for(json.model) : undefined;
  if (pairs === undefined) return { library: createLibrary(withAllSteps(json), config), pairs };
  // Without merges the library loads in half the time; its model is then ours.
  const library = createLibrary(withAllSteps({ ...json, model: { ...json.model, merges: [] } }), config);
  const { vocab, tokens_to_ids, unk_token_id } = library.model;
  const encode = (pieces: readonly string[]): string[] =>
    pieces.flatMap((piece) => pairs.encode(bytesOf(piece)).map((id) => vocab[id]!));
  library.model = Object.assign(encode, { vocab, tokens_to_ids, unk_token_id });
  return { library, pairs };
}

/** The bytes that a piece in GPT-2's alphabet stands for. */
const bytesOf = (piece: string): Uint8Array =>
  Uint8Array.from(piece, (character) => BYTE_OF_CHARACTER[character.charCodeAt(0)]! - 1);

/**
 * Encodes text with a library instance that has no added tokens, so that special-token strings in it stay text.
 *
 * In byte-level BPE the pre-tokenizers cut text into pieces whose tokens do not depend on each other; those are remembered. Any other tokenizer
 * goes through the library as a whole.
 */
export function createTextEncoder({ library, pairs }: PlainLibrary, json: TokenizerJson): (text: string) => Int32Array {
  const steps = splitSteps(json.pre_tokenizer);
  if (steps === undefined || pairs === undefined) {
    return (text) => Int32Array.from(library.encode(text, { add_special_tokens: false }).ids);
  }
  const { normalizer } = library;
  const splitters = steps.map((step) => splitterOf(json, step));
  const cache = new PieceCache();
  const utf8 = new TextEncoder();
  const encodePiece = (piece: string): PieceTokens => {
    const ids = pairs.encode(utf8.encode(piece));
    return ids.length === 1 ? ids[0]! : ids;
  };

  return (text) => {
    let pieces: string[] = text === '' ? [] : [normalizer === null ? text : normalizer(text)];
    for (const split of splitters) {
      const parts: string[] = [];
      for (const piece of pieces) for (const part of split(piece)) parts.push(part);
      pieces = parts;
    }
    let tokens = new Int32Array(pieces.length + 16);
    let length = 0;
    for (const piece of pieces) {
      let ids = cache.get(piece);
      if (ids === undefined) cache.set(piece, (ids = encodePiece(piece)));
      const more = typeof ids === 'number' ? 1 : ids.length;
      if (length + more > tokens.length) {
        const larger = new Int32Array((length + more) * 2);
        larger.set(tokens);
        tokens = larger;
      }
      if (typeof ids === 'number') tokens[length] = ids;
      else tokens.set(ids, length);
      length += more;
    }
    return tokens.slice(0, length);
  };
}

/** The pre-tokenizers before a closing plain ByteLevel, or undefined if the pipeline is another. */
function splitSteps(step: StepJson | null | undefined): readonly StepJson[] | undefined {
  if (step?.type !== 'Sequence') return undefined;
  const steps = step['pretokenizers'] as readonly StepJson[];
  const last = steps.at(-1);
  const isPlain = last?.type === 'ByteLevel' && last['use_regex'] === false && last['add_prefix_space'] === false;
  const before = steps.slice(0, -1);
  // Other kinds may add characters at the start of a text or drop some, which is for the library to sort out.
  return isPlain && before.every(({ type }) => type === 'Split') ? before : undefined;
}

function instanceOf(json: TokenizerJson, step: StepJson): Splitter {
  const { pre_tokenizer: split } = createLibrary(
    { ...withAllSteps(json), model: EMPTY_MODEL, pre_tokenizer: step },
    {},
  );
  return (text) => split?.(text) ?? [text];
}

function splitterOf(json: TokenizerJson, step: StepJson): Splitter {
  const slow = instanceOf(json, step);
  const pattern = step.type === 'Split' ? splitPattern(step) : null;
  if (pattern === null || step['invert'] === true || step['behavior'] === 'Removed') return slow;
  return (text) => {
    const matches = text.match(pattern);
    if (matches === null) return [text];
    // Most patterns match every character, and then this is the whole answer, several times faster.
    let covered = 0;
    for (const match of matches) covered += match.length;
    return covered === text.length && !matches.includes('') ? matches : isolate(text, pattern);
  };
}

/** What a pattern matches and what is between, in order. */
function isolate(text: string, pattern: RegExp): string[] {
  const pieces: string[] = [];
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > at) pieces.push(text.slice(at, match.index));
    if (match[0] !== '') pieces.push(match[0]);
    at = match.index + match[0].length;
  }
  if (at < text.length) pieces.push(text.slice(at));
  return pieces;
}
