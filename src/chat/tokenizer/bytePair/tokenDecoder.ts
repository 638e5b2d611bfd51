import { BYTE_OF_CHARACTER } from '../../../support/byteAlphabet.js';
import type { ByteSink } from './ByteSink.js';
import type { StepJson } from '../tokenizerFiles.js';

/** Writes the bytes of one token of the vocabulary. */
export type TokenWriter = (token: string, sink: ByteSink) => void;

/** How tokens become bytes, one after the other. */
export interface TokenDecoder {
  readonly write: TokenWriter;
  /** Spaces that are dropped at the start of a text, because the tokenizer put them there. */
  readonly leadingSpaces: number;
}

/**
 * Reads the decoder of a tokenizer.json: byte-level, or SentencePiece's replaced spaces with byte fallback. Undefined for the few others
 * (WordPiece, CTC, …), whose tokens cannot be told apart as bytes.
 */
export function tokenDecoder(decoder: StepJson | null | undefined): TokenDecoder | undefined {
  const steps = flatten(decoder);
  if (steps.length === 0) return undefined;
  if (steps.every(({ type }) => type === 'ByteLevel')) return { write: writeByteLevel, leadingSpaces: 0 };
  let leadingSpaces = 0;
  let byteFallback = false;
  const replacements: [string, string][] = [];
  for (const step of steps) {
    const { String: pattern } = (step['pattern'] ?? {}) as { String?: string };
    if (step.type === 'ByteFallback') byteFallback = true;
    else if (step.type === 'Replace' && pattern !== undefined) replacements.push([pattern, step['content'] as string]);
    else if (step.type === 'Strip' && step['content'] === ' ' && !step['stop']) leadingSpaces = step['start'] as number;
    else if (step.type === 'Metaspace') {
      replacements.push([(step['replacement'] as string | undefined) ?? '▁', ' ']);
      leadingSpaces = step['prepend_scheme'] === 'never' ? 0 : 1;
    } else if (step.type !== 'Fuse') return undefined;
  }
  const write: TokenWriter = (token, sink) => {
    const byte = byteFallback ? /^<0x([0-9A-F]{2})>$/.exec(token)?.[1] : undefined;
    if (byte !== undefined) sink.byte(Number.parseInt(byte, 16));
    else sink.text(replacements.reduce((text, [from, to]) => text.replaceAll(from, to), token));
  };
  return { write, leadingSpaces };
}

const flatten = (step: StepJson | null | undefined): readonly StepJson[] =>
  step == null ? [] : step.type === 'Sequence' ? (step['decoders'] as readonly StepJson[]).flatMap(flatten) : [step];

const writeByteLevel: TokenWriter = (token, sink) => {
  for (let index = 0; index < token.length; index++) {
    // A character outside the alphabet means that the token is plain text.
    if (!BYTE_OF_CHARACTER[token.charCodeAt(index)]) return sink.text(token);
  }
  for (let index = 0; index < token.length; index++) sink.byte(BYTE_OF_CHARACTER[token.charCodeAt(index)]! - 1);
};
