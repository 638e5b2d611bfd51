import { ByteSink, decodeUtf8 } from './bytePair/ByteSink.js';
import {
  createPlainLibrary,
  createTextEncoder,
  EMPTY_MODEL,
  withAllSteps,
  type PlainLibrary,
} from './bytePair/encodePieces.js';
import { createLibrary, type Library } from './library.js';
import { withPlainSteps } from './bytePair/plainSteps.js';
import { RECIPE, type Reproducible, type TokenizerRecipe } from './pool/recipe.js';
import { specialId } from './specials.js';
import { tokenDecoder, type TokenDecoder } from './bytePair/tokenDecoder.js';
import type { DecodeOptions, Tokenizer } from './Tokenizer.js';
import {
  addedTokens,
  checkAddedTokens,
  chatTemplateOf,
  checkTokenizerJson,
  tokenName,
  type AddedToken,
  type TokenizerFiles,
  type TokenizerJson,
} from './tokenizerFiles.js';
import { TokenizerError } from './TokenizerError.js';

/**
 * A tokenizer of the Hugging Face kind, made from the contents of its tokenizer.json and tokenizer_config.json.
 *
 * The library splits text at every added token, special or not. Here it gets none, which is what keeps special-token strings text; a second
 * instance, for trusted text only, knows them and shares the model of the first.
 */
export class HuggingFaceTokenizer implements Tokenizer, Reproducible {
  readonly vocabSize: number;
  readonly specialTokens: ReadonlyMap<string, number>;
  readonly eosTokenId: number | undefined;
  readonly bosTokenId: number | undefined;
  readonly chatTemplate: string | undefined;
  readonly [RECIPE]: TokenizerRecipe;

  /** All steps but the model, whose vocabulary need not be held twice. */
  readonly #steps: TokenizerJson;
  readonly #config: object;
  readonly #library: Library;
  readonly #vocabulary: readonly string[];
  readonly #added: ReadonlyMap<number, AddedToken>;
  readonly #decoder: TokenDecoder | undefined;
  readonly #encode: (text: string) => Int32Array;
  #trusted: Library | undefined;

  /** @throws TokenizerError for files that make no tokenizer. */
  constructor(
    readonly id: string,
    files: TokenizerFiles,
    recipe?: TokenizerRecipe,
  ) {
    const { config = {} } = files;
    checkTokenizerJson(files.tokenizer, id);
    checkAddedTokens(files, id);
    const tokenizer = withPlainSteps(files.tokenizer);
    let plain: PlainLibrary;
    let decoder: TokenDecoder | undefined;
    let encode: (text: string) => Int32Array;
    try {
      plain = createPlainLibrary(tokenizer, config);
      decoder = tokenDecoder(tokenizer.decoder);
      encode = createTextEncoder(plain, tokenizer);
    } catch (cause) {
      throw new TokenizerError(`${id}: @huggingface/tokenizers cannot read its tokenizer.json`, { cause });
    }
    const added = addedTokens(files);
    this.#steps = {
      ...tokenizer,
      model: { ...EMPTY_MODEL, end_of_word_suffix: tokenizer.model['end_of_word_suffix'] },
    };
    this.#config = config;
    this.#library = plain.library;
    this.#vocabulary = this.#library.model.vocab;
    this.#added = new Map(added.map((token) => [token.id, token]));
    this.#decoder = decoder;
    this.#encode = encode;
    this.specialTokens = new Map(added.map(({ content, id }) => [content, id]));
    this.vocabSize = added.reduce((size, token) => Math.max(size, token.id + 1), this.#vocabulary.length);
    this.eosTokenId = this.#idOf(tokenName(config.eos_token));
    this.bosTokenId = this.#idOf(tokenName(config.bos_token));
    this.chatTemplate = chatTemplateOf(files);
    this[RECIPE] = recipe ?? { kind: 'files', id, files };
  }

  encode(text: string): Int32Array {
    return this.#encode(text);
  }

  encodeWithSpecials(text: string): Int32Array {
    this.#trusted ??= this.#createTrusted();
    return Int32Array.from(this.#trusted.encode(text, { add_special_tokens: false }).ids);
  }

  decode(tokens: ArrayLike<number>, { skipSpecialTokens = false }: DecodeOptions = {}): string {
    if (this.#decoder !== undefined) return decodeUtf8(this.#bytes(tokens, this.#decoder, skipSpecialTokens));
    const strings: string[] = [];
    for (let index = 0; index < tokens.length; index++) {
      const token = this.#stringOf(tokens[index]!, skipSpecialTokens);
      if (token !== undefined) strings.push(token);
    }
    return this.#library.decoder === null ? strings.join(' ') : this.#library.decoder(strings);
  }

  decodeBytes(tokens: ArrayLike<number>): Uint8Array {
    if (this.#decoder !== undefined) return this.#bytes(tokens, this.#decoder, false);
    return new TextEncoder().encode(this.decode(tokens));
  }

  tokenId(special: string): number {
    return specialId(this.specialTokens, special, this.id);
  }

  #idOf(token: string | undefined): number | undefined {
    return token === undefined ? undefined : (this.specialTokens.get(token) ?? this.#library.token_to_id(token));
  }

  #stringOf(id: number, skipSpecials: boolean): string | undefined {
    const added = this.#added.get(id);
    if (added === undefined) return this.#vocabulary[id];
    return skipSpecials && added.special ? undefined : added.content;
  }

  #bytes(tokens: ArrayLike<number>, { write, leadingSpaces }: TokenDecoder, skipSpecials: boolean): Uint8Array {
    const sink = new ByteSink(tokens.length * 5);
    for (let index = 0; index < tokens.length; index++) {
      const id = tokens[index]!;
      const token = this.#stringOf(id, skipSpecials);
      if (token === undefined) continue;
      // Added tokens are plain text, outside the alphabet of the vocabulary.
      if (this.#added.has(id)) sink.text(token);
      else write(token, sink);
    }
    const bytes = sink.take();
    let skip = 0;
    while (skip < leadingSpaces && bytes[skip] === 0x20) skip++;
    return skip === 0 ? bytes : bytes.slice(skip);
  }

  #createTrusted(): Library {
    const added_tokens = [...this.#added.values()];
    const trusted = createLibrary({ ...withAllSteps(this.#steps), added_tokens }, this.#config);
    trusted.model = this.#library.model;
    return trusted;
  }
}
