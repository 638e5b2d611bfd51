import { chunkLength, type ModelInputChunk } from '../../../wire/chunk.js';
import type { Tokenizer } from '../../tokenizer/Tokenizer.js';

/** A bit of a rendered conversation: text (encoded as text, whatever is in it), a token id, or an image or audio chunk. */
export type Piece = string | number | ModelInputChunk;

/** What may stand inside a {@link Markup} template: pieces, or nothing. */
export type MarkupValue = Piece | readonly Piece[];

/**
 * A template tag: `markup\`<|im_start|>${role}\n\``. Special tokens are recognised in the literal parts only, which the program wrote; what
 * is interpolated stays text. That line between literal and value is what keeps message text from forging a turn marker.
 */
export type Markup = (literals: TemplateStringsArray, ...values: readonly MarkupValue[]) => Piece[];

/** A {@link Markup} tag that knows the special tokens of one tokenizer. */
export function createMarkup(tokenizer: Tokenizer): Markup {
  const trusted = createTrusted(tokenizer);
  const parsed = new WeakMap<TemplateStringsArray, Piece[][]>();
  return (literals, ...values) => {
    let literalPieces = parsed.get(literals);
    if (literalPieces === undefined) parsed.set(literals, (literalPieces = literals.map(trusted)));
    const pieces: Piece[] = [];
    literalPieces.forEach((literal, index) => {
      pieces.push(...literal);
      const value = values[index];
      if (value === undefined) return;
      if (Array.isArray(value)) pieces.push(...(value as readonly Piece[]));
      else pieces.push(value as Piece);
    });
    return pieces;
  };
}

/** Splits text that the program itself wrote into special tokens and text. Never call it with text from a message. */
export function createTrusted(tokenizer: Tokenizer): (text: string) => Piece[] {
  const specials = [...tokenizer.specialTokens.keys()].filter((special) => special !== '');
  specials.sort((a, b) => b.length - a.length);
  if (specials.length === 0) return (text) => (text === '' ? [] : [text]);
  const pattern = new RegExp(`(${specials.map((s) => s.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')})`);
  return (text) =>
    text
      .split(pattern)
      .filter((part) => part !== '')
      .map((part) => tokenizer.specialTokens.get(part) ?? part);
}

/** A run of tokens, or a chunk that is not text and takes `length` positions. */
export type Run = { readonly tokens: readonly number[] } | { readonly chunk: ModelInputChunk; readonly length: number };

/** Encodes pieces in order. Neighbouring texts are joined first, as a tokenizer would see them in the whole string. */
export function encodePieces(pieces: readonly Piece[], tokenizer: Tokenizer): Run[] {
  const runs: Run[] = [];
  let tokens: number[] = [];
  let text = '';
  const flushText = (): void => {
    if (text !== '') for (const token of tokenizer.encode(text)) tokens.push(token);
    text = '';
  };
  const flush = (): void => {
    flushText();
    if (tokens.length > 0) runs.push({ tokens });
    tokens = [];
  };
  for (const piece of pieces) {
    if (typeof piece === 'string') text += piece;
    else if (typeof piece === 'number') {
      flushText();
      tokens.push(piece);
    } else {
      flush();
      runs.push({ chunk: piece, length: chunkLength(piece) });
    }
  }
  flush();
  return runs;
}
