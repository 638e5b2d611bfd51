import { ByteSink, decodeUtf8 } from './bytePair/ByteSink.js';
import { RECIPE, type Reproducible, type TokenizerRecipe } from './pool/recipe.js';
import { encodeSections, specialId, specialSplitter } from './specials.js';
import type { DecodeOptions, Tokenizer } from './Tokenizer.js';

const BYTES = 256;
const END = 256;
const BEGIN = 261;
const SPECIALS: ReadonlyMap<string, number> = new Map([
  ['<|end|>', END],
  ['<|system|>', 257],
  ['<|user|>', 258],
  ['<|assistant|>', 259],
  ['<|tool|>', 260],
  ['<|begin|>', BEGIN],
  ['<|reserved0|>', 262],
  ['<|reserved1|>', 263],
]);
const CONTENTS = [...SPECIALS.keys()];
const split = specialSplitter(SPECIALS);
const utf8 = new TextEncoder();

/**
 * The tokenizer of the embedded service's models: ids 0 to 255 are the bytes of UTF-8, eight special tokens stand above.
 *
 * A lone surrogate is encoded as U+FFFD, as in every UTF-8 encoder.
 */
export class ByteTokenizer implements Tokenizer, Reproducible {
  readonly vocabSize = BYTES + SPECIALS.size;
  readonly specialTokens = SPECIALS;
  /** Ends a sequence. */
  readonly eosTokenId = END;
  /** Begins a sequence. */
  readonly bosTokenId = BEGIN;
  readonly chatTemplate = undefined;

  constructor(readonly id = 'tinker-rx/tiny') {}

  encode(text: string): Int32Array {
    return Int32Array.from(utf8.encode(text));
  }

  encodeWithSpecials(text: string): Int32Array {
    return encodeSections(split(text), (section) => this.encode(section));
  }

  decode(tokens: ArrayLike<number>, options: DecodeOptions = {}): string {
    return decodeUtf8(this.#bytes(tokens, options.skipSpecialTokens ?? false));
  }

  decodeBytes(tokens: ArrayLike<number>): Uint8Array {
    return this.#bytes(tokens, false);
  }

  tokenId(special: string): number {
    return specialId(SPECIALS, special, this.id);
  }

  get [RECIPE](): TokenizerRecipe {
    return { kind: 'bytes', id: this.id };
  }

  #bytes(tokens: ArrayLike<number>, skipSpecials: boolean): Uint8Array {
    const sink = new ByteSink(tokens.length);
    for (let index = 0; index < tokens.length; index++) {
      const token = tokens[index]!;
      if (token >= 0 && token < BYTES) sink.byte(token);
      else if (!skipSpecials) sink.text(CONTENTS[token - BYTES] ?? '');
    }
    return sink.take();
  }
}
