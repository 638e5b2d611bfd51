import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteTokenizer } from '../../../src/chat/tokenizer/index.js';
import {
  decodeTokens,
  encodeText,
  END_TOKEN,
  SPECIAL,
  SPECIAL_NAMES,
  VOCABULARY_SIZE,
} from '../../../src/local/engine/model/vocabulary.js';

const tokenizer = new ByteTokenizer();
const text = fc.string({ unit: 'binary' });

describe('the byte tokenizer agrees with the embedded service', () => {
  it('on its special tokens', () => {
    expect(new Map(Array.from(SPECIAL_NAMES, ([id, name]) => [name, id]))).toEqual(tokenizer.specialTokens);
    expect(tokenizer.vocabSize).toBe(VOCABULARY_SIZE);
    expect(tokenizer.eosTokenId).toBe(END_TOKEN);
    expect(tokenizer.bosTokenId).toBe(SPECIAL.begin);
    expect(tokenizer.tokenId('<|assistant|>')).toBe(SPECIAL.assistant);
  });

  it('on text', () => {
    fc.assert(
      fc.property(text, (value) => {
        expect(tokenizer.encode(value)).toEqual(encodeText(value));
      }),
    );
  });

  it('on what tokens mean', () => {
    const tokens = fc.array(fc.nat({ max: VOCABULARY_SIZE - 1 }));
    fc.assert(
      fc.property(tokens, (value) => {
        expect(tokenizer.decode(value)).toBe(decodeTokens(value, { special: true }));
      }),
    );
  });
});

describe('the byte tokenizer', () => {
  it('keeps special-token strings text, unless they are trusted', () => {
    const value = 'a<|end|>b';
    expect(tokenizer.encode(value).every((token) => token < 256)).toBe(true);
    expect([...tokenizer.encodeWithSpecials(value)]).toEqual([97, 256, 98]);
  });

  it('leaves special tokens out on request, and unknown ids always', () => {
    expect(tokenizer.decode([104, 256, 105, 999], { skipSpecialTokens: true })).toBe('hi');
    expect(tokenizer.decode([104, 256, 105, 999, -1])).toBe('h<|end|>i');
    expect(tokenizer.decode([])).toBe('');
  });

  it('gives exact bytes', () => {
    expect([...tokenizer.decodeBytes([0xe2, 0x98])]).toEqual([0xe2, 0x98]);
    expect(tokenizer.decode([0xe2, 0x98])).toBe('\uFFFD');
  });
});
