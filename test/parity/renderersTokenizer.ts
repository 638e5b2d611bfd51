import type { Tokenizer } from '../../src/chat/tokenizer/Tokenizer.js';

/** A tokenizer as `renderers_golden.py` records it: see the head of that script for what is in it. */
export interface RecordedVocabulary {
  readonly patterns: readonly string[];
  readonly nfc: boolean;
  readonly bos: number | null;
  readonly eos: number | null;
  readonly specials: Readonly<Record<string, number>>;
  readonly vocabulary: Readonly<Record<string, number>>;
}

/** Byte-pair encoding over a recorded part of a real vocabulary: the real tokens on recorded text, smaller pieces elsewhere. */
export class RecordedTokenizer implements Tokenizer {
  readonly specialTokens: ReadonlyMap<string, number>;
  readonly vocabSize: number;
  readonly chatTemplate = undefined;
  readonly bosTokenId: number | undefined;
  readonly eosTokenId: number | undefined;
  readonly #ranks = new Map<string, number>();
  readonly #bytes = new Map<number, Uint8Array>();
  readonly #patterns: readonly RegExp[];
  readonly #nfc: boolean;
  readonly #words = new Map<string, readonly number[]>();

  constructor(
    readonly id: string,
    recorded: RecordedVocabulary,
  ) {
    this.specialTokens = new Map(Object.entries(recorded.specials));
    for (const [encoded, token] of Object.entries(recorded.vocabulary)) {
      const bytes = Buffer.from(encoded, 'base64');
      this.#ranks.set(bytes.toString('latin1'), token);
      this.#bytes.set(token, bytes);
    }
    for (const [special, token] of this.specialTokens) this.#bytes.set(token, new TextEncoder().encode(special));
    this.vocabSize = Math.max(...this.#bytes.keys()) + 1;
    this.bosTokenId = recorded.bos ?? undefined;
    this.eosTokenId = recorded.eos ?? undefined;
    this.#patterns = recorded.patterns.map((pattern) => new RegExp(pattern, 'gv'));
    this.#nfc = recorded.nfc;
  }

  encode(text: string): Int32Array {
    let words = [this.#nfc ? text.normalize('NFC') : text];
    for (const pattern of this.#patterns) words = words.flatMap((word) => split(word, pattern));
    return Int32Array.from(words.flatMap((word) => this.#word(word)));
  }

  #word(word: string): readonly number[] {
    let tokens = this.#words.get(word);
    if (tokens === undefined)
      this.#words.set(word, (tokens = this.#pairs(Buffer.from(word, 'utf8').toString('latin1'))));
    return tokens;
  }

  #pairs(word: string): number[] {
    const parts = [...word];
    for (;;) {
      let best = Infinity;
      let at = -1;
      for (let i = 0; i + 1 < parts.length; i++) {
        const rank = this.#ranks.get(parts[i]! + parts[i + 1]!) ?? Infinity;
        if (rank < best) [best, at] = [rank, i];
      }
      if (at < 0) break;
      parts.splice(at, 2, parts[at]! + parts[at + 1]!);
    }
    return parts.map((part) => this.#ranks.get(part)!);
  }

  encodeWithSpecials(): Int32Array {
    throw new Error('renderers place special tokens by id');
  }

  decode(tokens: ArrayLike<number>): string {
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(this.decodeBytes(tokens));
  }

  decodeBytes(tokens: ArrayLike<number>): Uint8Array {
    return Buffer.concat(
      Array.from(tokens, (token) => {
        const bytes = this.#bytes.get(token);
        if (bytes === undefined) throw new RangeError(`${this.id} has no token ${token}`);
        return bytes;
      }),
    );
  }

  tokenId(special: string): number {
    const id = this.specialTokens.get(special);
    if (id === undefined) throw new RangeError(`${this.id} has no special token ${special}`);
    return id;
  }
}

function split(text: string, pattern: RegExp): string[] {
  const parts: string[] = [];
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > at) parts.push(text.slice(at, match.index));
    if (match[0] !== '') parts.push(match[0]);
    at = match.index + match[0].length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}
