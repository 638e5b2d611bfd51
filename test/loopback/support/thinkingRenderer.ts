import { getRenderer } from '../../../src/chat/renderers/index.js';
import { encodeSections, specialId, specialSplitter } from '../../../src/chat/tokenizer/specials.js';
import type { DecodeOptions, Tokenizer } from '../../../src/chat/tokenizer/index.js';

const NAMES = ['<|im_start|>', '<|im_end|>', '<|endoftext|>', '<think>', '</think>', '<tool_call>', '</tool_call>'];
const SPECIALS: ReadonlyMap<string, number> = new Map(NAMES.map((name, index) => [name, 256 + index]));
const split = specialSplitter(SPECIALS);

/** Bytes, and the special tokens of a family that thinks. Hand-written: a real vocabulary has 150,000 tokens. */
class ThinkingTokenizer implements Tokenizer {
  readonly id = 'test/thinking';
  readonly vocabSize = 256 + NAMES.length;
  readonly specialTokens = SPECIALS;
  readonly eosTokenId = 258;
  readonly bosTokenId = undefined;
  readonly chatTemplate = undefined;

  encode(text: string): Int32Array {
    return Int32Array.from(Buffer.from(text));
  }

  encodeWithSpecials(text: string): Int32Array {
    return encodeSections(split(text), (section) => this.encode(section));
  }

  decode(tokens: ArrayLike<number>, { skipSpecialTokens = false }: DecodeOptions = {}): string {
    const kept = Array.from(tokens).filter((token) => !skipSpecialTokens || token < 256);
    return Buffer.from(this.decodeBytes(kept)).toString();
  }

  decodeBytes(tokens: ArrayLike<number>): Uint8Array {
    return Buffer.concat(
      Array.from(tokens, (token) => (token < 256 ? Buffer.of(token) : Buffer.from(NAMES[token - 256] ?? ''))),
    );
  }

  tokenId(special: string): number {
    return specialId(SPECIALS, special, this.id);
  }
}

/** Qwen3's format, which thinks before every answer; earlier thoughts stay in the prompt, so that a test can see them. */
export const thinking = getRenderer('qwen3', new ThinkingTokenizer(), { stripThinkingFromHistory: false });

/** A reply of that family: what it thinks, what it says, and the tools it calls. */
export const thought = (thoughts: string, text: string, ...calls: readonly (readonly [string, object])[]): string =>
  `<think>\n${thoughts}\n</think>\n\n${text}${calls
    .map(([name, input]) => `\n<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call>`)
    .join('')}`;
