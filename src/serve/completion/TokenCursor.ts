import type { Tokenizer } from '../../chat/tokenizer/Tokenizer.js';
import type { SampledToken } from './ChatRequest.js';
import type { TokenData } from './ReplyReader.js';
import type { Renderer } from '../../chat/renderers/core/Renderer.js';

/** The service's mark for a place among the most likely tokens that it could not fill. */
const EMPTY_CELL = -99_999;

/**
 * Tells which sampled tokens a piece of the text was made of. Texts are asked for in the order they were sampled;
 * tokens between them, such as the marker that ends the thinking, count to the text after them.
 */
export class TokenCursor {
  readonly #tokens: SampledToken[] = [];
  /** Where each token ends in the bytes so far. */
  readonly #ends: number[] = [];
  #bytes = Buffer.alloc(0);
  #at = 0;
  #taken = 0;

  constructor(private readonly tokenizer: Tokenizer) {}

  /** How many tokens were made into text. */
  get taken(): number {
    return this.#taken;
  }

  add(part: TokenData): void {
    const pieces = Array.from(part.tokens, (token) => this.tokenizer.decodeBytes([token]));
    let end = this.#bytes.length;
    pieces.forEach((piece, index) => {
      this.#ends.push((end += piece.length));
      this.#tokens.push(sampledToken(part, index));
    });
    this.#bytes = Buffer.concat([this.#bytes, ...pieces]);
  }

  /** The tokens up to the end of this text. */
  take(text: string): readonly SampledToken[] {
    const wanted = Buffer.from(text);
    const found = this.#bytes.indexOf(wanted, this.#at);
    // A text that was changed on its way, such as a damaged character, takes all there is.
    this.#at = found < 0 ? this.#bytes.length : found + wanted.length;
    const from = this.#taken;
    while (this.#taken < this.#tokens.length && this.#startOf(this.#taken) < this.#at) this.#taken++;
    return this.#tokens.slice(from, this.#taken);
  }

  #startOf(token: number): number {
    return token === 0 ? 0 : this.#ends[token - 1]!;
  }
}

function sampledToken({ tokens, logprobs, topkLogprobs }: TokenData, index: number): SampledToken {
  const top: (readonly [number, number])[] = [];
  if (topkLogprobs !== undefined) {
    const { k, tokenIds, logprobs: values } = topkLogprobs;
    for (let cell = index * k; cell < (index + 1) * k; cell++) {
      if (values[cell]! > EMPTY_CELL) top.push([tokenIds[cell]!, values[cell]!]);
    }
  }
  return { token: tokens[index]!, logprob: logprobs?.[index] ?? 0, top };
}

/** All tokens of something that was sampled. */
export const sampledTokens = (part: TokenData): SampledToken[] =>
  Array.from(part.tokens, (_, index) => sampledToken(part, index));

/** Whether a token only ends a turn or a text, and is no part of what was said. */
export function endsTurn(renderer: Renderer, token: number | undefined): boolean {
  if (token === undefined) return false;
  const stops: readonly unknown[] = renderer.getStopSequences();
  return token === renderer.tokenizer.eosTokenId || stops.includes(token);
}

/** A function of a token that is computed once for each: of thousands of tokens in an answer, few are different. */
export function remembering<T>(compute: (token: number) => T): (token: number) => T {
  const known = new Map<number, T>();
  return (token) => {
    let value = known.get(token);
    if (value === undefined) known.set(token, (value = compute(token)));
    return value;
  };
}
