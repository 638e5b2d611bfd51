/** Options of {@link Tokenizer.decode}. */
export interface DecodeOptions {
  /** Leave special tokens out of the text. Default `false`. */
  readonly skipSpecialTokens?: boolean;
}

/**
 * Text ↔ tokens for one model.
 *
 * `encode` is safe for text from anyone: a special-token string inside it (`<|im_end|>`, `<think>`, …) is encoded as the
 * characters it is made of and never as the token. Turn markers are placed by id, with {@link Tokenizer.tokenId}, or by
 * `encodeWithSpecials` for text that the program itself wrote.
 */
export interface Tokenizer {
  /** What the tokenizer was loaded as: a Hugging Face identifier, a folder, or a custom name. */
  readonly id: string;
  /** One more than the largest token id. */
  readonly vocabSize: number;
  /** Every added or special token: its string → its id. */
  readonly specialTokens: ReadonlyMap<string, number>;
  /** The token that ends a sequence, if the model has one. */
  readonly eosTokenId: number | undefined;
  /** The token that begins a sequence, if the model has one. */
  readonly bosTokenId: number | undefined;
  /** The Jinja chat template that came with the tokenizer, if one did. */
  readonly chatTemplate: string | undefined;
  /** Encodes text as text: special-token strings in it stay text, and neither bos nor eos is added. */
  encode(text: string): Int32Array;
  /** Encodes trusted text: special-token strings become their ids. Neither bos nor eos is added. */
  encodeWithSpecials(text: string): Int32Array;
  /** Text of the tokens; incomplete UTF-8 becomes U+FFFD and an id that the tokenizer does not know nothing at all. `decode([])` is `''`. */
  decode(tokens: ArrayLike<number>, options?: DecodeOptions): string;
  /** The exact bytes of the tokens, so that a stream can hold back an incomplete character. */
  decodeBytes(tokens: ArrayLike<number>): Uint8Array;
  /** Id of a special token. Throws a `TokenizerError` that names the tokenizer when there is none. */
  tokenId(special: string): number;
}
