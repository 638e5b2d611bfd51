import { ByteSink, decodeUtf8 } from '../bytePair/ByteSink.js';
import { rankedTokens } from './rankFile.js';
import { RECIPE, type Reproducible, type TokenizerRecipe } from '../pool/recipe.js';
import { encodeSections, specialId, specialSplitter, type Section } from '../specials.js';
import type { TiktokenEngine } from './tiktokenEngine.js';
import type { DecodeOptions, Tokenizer } from '../Tokenizer.js';

/** What makes a tiktoken encoding: plain data. */
export interface TiktokenFields {
  /** Ranks in the form of the `tiktoken` package; see `readRankFile`. */
  readonly ranks: string;
  /** How text is cut into pieces, in the syntax of Rust's regular expressions. */
  readonly pattern: string;
  /** Special tokens and their ids. */
  readonly specials: ReadonlyMap<string, number>;
  /** Ends a sequence. Default: none. */
  readonly eosTokenId?: number;
  /** Begins a sequence. Default: none. */
  readonly bosTokenId?: number;
  /** The chat template. Default: none. */
  readonly chatTemplate?: string;
}

/**
 * A tokenizer of the tiktoken kind: a rank file, a pattern, and special tokens.
 *
 * The engine never hears of the special tokens, so that it cannot find them in a text. Its merges are quadratic in the longest piece without a
 * break: 12,000 characters of Han in one run take about a second.
 */
export class TiktokenTokenizer implements Tokenizer, Reproducible {
  readonly vocabSize: number;
  readonly specialTokens: ReadonlyMap<string, number>;
  readonly eosTokenId: number | undefined;
  readonly bosTokenId: number | undefined;
  readonly chatTemplate: string | undefined;
  readonly [RECIPE]: TokenizerRecipe;

  readonly #engine: TiktokenEngine;
  readonly #tokens: readonly (string | undefined)[];
  readonly #specialNames: ReadonlyMap<number, string>;
  readonly #split: (text: string) => Section[];

  constructor(
    readonly id: string,
    fields: TiktokenFields,
    createEngine: (ranks: string, pattern: string) => TiktokenEngine,
  ) {
    const { ranks, pattern, specials } = fields;
    this.#engine = createEngine(ranks, pattern);
    this.#tokens = rankedTokens(ranks);
    this.#specialNames = new Map(Array.from(specials, ([name, token]) => [token, name]));
    this.#split = specialSplitter(specials);
    this.specialTokens = specials;
    this.vocabSize = Math.max(this.#tokens.length, ...Array.from(specials.values(), (token) => token + 1));
    this.eosTokenId = fields.eosTokenId;
    this.bosTokenId = fields.bosTokenId;
    this.chatTemplate = fields.chatTemplate;
    this[RECIPE] = { kind: 'tiktoken', id, fields };
  }

  encode(text: string): Int32Array {
    return text === '' ? new Int32Array() : Int32Array.from(this.#engine.encode_ordinary(text));
  }

  encodeWithSpecials(text: string): Int32Array {
    return encodeSections(this.#split(text), (section) => this.encode(section));
  }

  decode(tokens: ArrayLike<number>, { skipSpecialTokens = false }: DecodeOptions = {}): string {
    return decodeUtf8(this.#bytes(tokens, skipSpecialTokens));
  }

  decodeBytes(tokens: ArrayLike<number>): Uint8Array {
    return this.#bytes(tokens, false);
  }

  tokenId(special: string): number {
    return specialId(this.specialTokens, special, this.id);
  }

  #bytes(tokens: ArrayLike<number>, skipSpecials: boolean): Uint8Array {
    const sink = new ByteSink(tokens.length * 5);
    for (let index = 0; index < tokens.length; index++) {
      const token = tokens[index]!;
      const ranked = this.#tokens[token];
      if (ranked !== undefined) sink.bytes(Buffer.from(ranked, 'base64'));
      else if (!skipSpecials) sink.text(this.#specialNames.get(token) ?? '');
    }
    return sink.take();
  }
}
