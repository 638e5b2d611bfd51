import { chunkLength, type EncodedTextChunk, type ModelInputChunk } from '../../wire/chunk.js';
import { ValidationError } from '../../wire/tinkerError.js';

const isText = (chunk: ModelInputChunk | undefined): chunk is EncodedTextChunk => chunk?.type === 'encoded_text';

/**
 * Cuts chunks to at most `maxLength` positions, from the right: text at any token, an image or audio whole or not at all. What is left
 * ends in text, because nothing is learned from an image that nothing follows.
 */
export function truncateChunks(chunks: readonly ModelInputChunk[], maxLength = Infinity): ModelInputChunk[] {
  const kept: ModelInputChunk[] = [];
  let room = maxLength;
  for (const chunk of chunks) {
    const length = chunkLength(chunk);
    if (length <= room) {
      if (length > 0) kept.push(chunk);
      room -= length;
      continue;
    }
    if (isText(chunk) && room > 0) kept.push({ type: 'encoded_text', tokens: chunk.tokens.slice(0, room) });
    break;
  }
  while (kept.length > 0 && !isText(kept.at(-1))) kept.pop();
  return kept;
}

/** A sequence and what each position of it predicts. */
export interface ShiftedChunks {
  /** Everything but the last token. */
  readonly chunks: ModelInputChunk[];
  /** Everything but the first token; 0 where an image or audio stands. */
  readonly targets: Int32Array;
}

/**
 * Shifts a sequence by one: position i of the input predicts token i + 1.
 *
 * @throws ValidationError for fewer than two positions, or a sequence that does not end in text
 */
export function shiftChunks(chunks: readonly ModelInputChunk[]): ShiftedChunks {
  const last = chunks.at(-1);
  const length = chunks.reduce((sum, chunk) => sum + chunkLength(chunk), 0);
  if (length < 2) throw new ValidationError(`an example needs at least two tokens to predict one, got ${length}`);
  if (!isText(last))
    throw new ValidationError(`an example must end in text, this one ends in ${last?.type ?? 'nothing'}`);
  const tokens = new Int32Array(length);
  let at = 0;
  for (const chunk of chunks) {
    if (isText(chunk)) tokens.set(chunk.tokens, at);
    at += chunkLength(chunk);
  }
  const rest = last.tokens.slice(0, -1);
  const input = rest.length > 0 ? [...chunks.slice(0, -1), { ...last, tokens: rest }] : chunks.slice(0, -1);
  return { chunks: input, targets: tokens.slice(1) };
}

/** The same sequence with neighbouring text chunks made one. */
export function joinText(chunks: readonly ModelInputChunk[]): ModelInputChunk[] {
  const joined: ModelInputChunk[] = [];
  for (const chunk of chunks) {
    const last = joined.at(-1);
    if (!isText(chunk) || !isText(last)) {
      joined.push(chunk);
      continue;
    }
    const tokens = new Int32Array(last.tokens.length + chunk.tokens.length);
    tokens.set(last.tokens);
    tokens.set(chunk.tokens, last.tokens.length);
    joined[joined.length - 1] = { type: 'encoded_text', tokens };
  }
  return joined;
}

/** What `whole` has after `start`, or undefined if it does not begin with it. Where chunks are cut does not matter. */
export function remainderAfter(
  start: readonly ModelInputChunk[],
  whole: readonly ModelInputChunk[],
): ModelInputChunk[] | undefined {
  const prefix = joinText(start);
  const rest = joinText(whole);
  for (const chunk of prefix) {
    const other = rest.shift();
    if (other === undefined) return undefined;
    if (!isText(chunk) || !isText(other)) {
      if (!isSameChunk(chunk, other)) return undefined;
      continue;
    }
    const { length } = chunk.tokens;
    if (length > other.tokens.length || !isSame(chunk.tokens, other.tokens.subarray(0, length))) return undefined;
    if (other.tokens.length > length) rest.unshift({ type: 'encoded_text', tokens: other.tokens.subarray(length) });
  }
  return rest;
}

const isSame = (a: ArrayLike<number>, b: ArrayLike<number>): boolean => {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index++) if (a[index] !== b[index]) return false;
  return true;
};

function isSameChunk(a: ModelInputChunk, b: ModelInputChunk): boolean {
  if (a.type === 'image' && b.type === 'image') return isSame(a.data, b.data);
  if (a.type === 'dmel' && b.type === 'dmel') return isSame(a.dmel, b.dmel);
  return a.type === 'image_asset_pointer' && b.type === 'image_asset_pointer' && a.location === b.location;
}
