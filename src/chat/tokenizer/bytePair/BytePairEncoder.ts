import { CHARACTER_OF_BYTE } from '../../../support/byteAlphabet.js';
import { NumberHeap } from './NumberHeap.js';
import { PairTable } from './PairTable.js';
import type { TokenizerJson } from '../tokenizerFiles.js';

type Merge = string | readonly [string, string];

/** The model of a tokenizer.json, as far as it is byte-level BPE. */
interface BytePairModel {
  readonly type?: string;
  readonly vocab: Readonly<Record<string, number>>;
  readonly merges: readonly Merge[];
  readonly ignore_merges?: boolean;
}

const POSITIONS = 2 ** 32;

/**
 * Byte-pair encoding on ids: the same merges as the library's, which looks up a JSON string for every pair, at a tenth of the time.
 *
 * The pair with the lowest rank merges first, the leftmost of equals, until no pair is left that merges.
 */
export class BytePairEncoder {
  readonly #ranks: PairTable;
  /** Rank → id of what the pair becomes. */
  readonly #merged: Int32Array;
  readonly #bytes: Int32Array;
  readonly #whole: ReadonlyMap<string, number> | undefined;

  private constructor(
    { merges, ignore_merges = false }: BytePairModel,
    ids: ReadonlyMap<string, number>,
    bytes: Int32Array,
  ) {
    this.#ranks = new PairTable(merges.length);
    this.#merged = new Int32Array(merges.length);
    this.#bytes = bytes;
    this.#whole = ignore_merges ? ids : undefined;
    merges.forEach((merge, rank) => {
      const [left, right] = typeof merge === 'string' ? (merge.split(' ', 2) as [string, string]) : merge;
      const [leftId, rightId, id] = [ids.get(left), ids.get(right), ids.get(left + right)];
      if (leftId === undefined || rightId === undefined || id === undefined) return;
      this.#ranks.set(leftId, rightId, rank);
      this.#merged[rank] = id;
    });
  }

  /** An encoder for a tokenizer.json whose model is plain byte-level BPE with all 256 bytes; undefined for any other. */
  static for(model: TokenizerJson['model']): BytePairEncoder | undefined {
    const { type = 'BPE', vocab, merges } = model as unknown as BytePairModel;
    const hasVariant = ['dropout', 'continuing_subword_prefix', 'end_of_word_suffix', 'byte_fallback'].some((key) =>
      Boolean(model[key]),
    );
    if (type !== 'BPE' || !Array.isArray(merges) || hasVariant) return undefined;
    const ids = new Map(Object.entries(vocab));
    const bytes = Int32Array.from(CHARACTER_OF_BYTE, (character) => ids.get(character) ?? -1);
    return bytes.includes(-1) ? undefined : new BytePairEncoder(model as unknown as BytePairModel, ids, bytes);
  }

  /** The ids of the bytes of one piece. */
  encode(piece: Uint8Array): number[] {
    const { length } = piece;
    if (this.#whole !== undefined) {
      let name = '';
      for (const byte of piece) name += CHARACTER_OF_BYTE[byte]!;
      const id = this.#whole.get(name);
      if (id !== undefined) return [id];
    }
    const ids = new Int32Array(length);
    // Symbols are named by the position of their first byte; a merged one lives on in the left position.
    const next = new Int32Array(length);
    const previous = new Int32Array(length);
    const ranks = new Int32Array(length).fill(-1);
    const heap = new NumberHeap();
    const look = (left: number): void => {
      const right = next[left]!;
      const rank = right < length ? this.#ranks.get(ids[left]!, ids[right]!) : -1;
      ranks[left] = rank;
      if (rank >= 0) heap.push(rank * POSITIONS + left);
    };
    for (let at = 0; at < length; at++) {
      ids[at] = this.#bytes[piece[at]!]!;
      next[at] = at + 1;
      previous[at] = at - 1;
    }
    for (let at = 0; at + 1 < length; at++) look(at);
    while (heap.length > 0) {
      const entry = heap.pop();
      const left = entry % POSITIONS;
      const rank = (entry - left) / POSITIONS;
      // The pair may have changed since it was put here.
      if (ranks[left] !== rank) continue;
      const right = next[left]!;
      ids[left] = this.#merged[rank]!;
      ranks[right] = -1;
      next[left] = next[right]!;
      if (next[left] < length) previous[next[left]] = left;
      look(left);
      if (previous[left]! >= 0) look(previous[left]!);
    }
    const tokens: number[] = [];
    for (let at = 0; at < length; at = next[at]!) tokens.push(ids[at]!);
    return tokens;
  }
}
