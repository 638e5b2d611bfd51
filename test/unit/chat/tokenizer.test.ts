import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  HuggingFaceTokenizer,
  tokenizerFromFolder,
  TokenizerError,
  type Tokenizer,
} from '../../../src/chat/tokenizer/index.js';
import { createLibrary } from '../../../src/chat/tokenizer/library.js';

/** Small tokenizers and what Python makes of them, written by test/parity/tokenizer_golden.py. */
const RECORDED = new URL('../../parity/recorded/tokenizers/small/', import.meta.url).pathname;

interface Case {
  readonly text: string;
  readonly plain: number[];
  readonly trusted: number[];
  readonly decoded: string;
  readonly skipped?: string;
  readonly cut?: string;
}

const casesOf = (name: string): Case[] => {
  const { cases } = JSON.parse(readFileSync(join(RECORDED, `${name}.json`), 'utf8')) as { cases: Case[] };
  expect(cases.length).toBeGreaterThan(2);
  return cases;
};
const load = (name: string): Promise<Tokenizer> => tokenizerFromFolder(join(RECORDED, name), name);

for (const name of ['byte-level', 'sentence-piece', 'word-piece']) {
  describe(`a ${name} tokenizer, as in Python`, () => {
    let tokenizer: Tokenizer;
    beforeAll(async () => {
      tokenizer = await load(name);
    });

    it('encodes text as text', () => {
      for (const { text, plain } of casesOf(name)) expect([text, [...tokenizer.encode(text)]]).toEqual([text, plain]);
    });

    it('encodes trusted text with its special tokens', () => {
      for (const { text, trusted } of casesOf(name)) {
        // Around a token that swallows white space, the library takes JavaScript's idea of it, which knows no U+0085.
        if (text.includes('[MASK]') && /[\u0085\uFEFF]/.test(text)) continue;
        expect([text, [...tokenizer.encodeWithSpecials(text)]]).toEqual([text, trusted]);
      }
    });

    it('decodes', () => {
      for (const { plain, decoded } of casesOf(name)) expect(tokenizer.decode(plain)).toBe(decoded);
      expect(tokenizer.decode([])).toBe('');
      expect(tokenizer.decodeBytes([])).toEqual(new Uint8Array());
    });

    it('gives the same tokens a second time, from what it remembers', () => {
      for (const { text } of casesOf(name)) expect(tokenizer.encode(text)).toEqual(tokenizer.encode(text));
    });
  });
}

describe('special tokens', () => {
  let tokenizer: Tokenizer;
  beforeAll(async () => {
    tokenizer = await load('byte-level');
  });

  it('are all known by name, those of the config included', () => {
    expect([...tokenizer.specialTokens.keys()]).toEqual([
      '<|im_start|>',
      '<|im_end|>',
      '<|endoftext|>',
      '<think>',
      '</think>',
      '[MASK]',
      'cafe\u0301',
      '<|im_end|><|im_end|>',
      '<|extra|>',
    ]);
    expect(tokenizer.tokenId('<|extra|>')).toBe(tokenizer.vocabSize - 1);
    expect(tokenizer.eosTokenId).toBe(tokenizer.tokenId('<|im_end|>'));
    expect(tokenizer.bosTokenId).toBe(tokenizer.tokenId('<|endoftext|>'));
    expect(tokenizer.chatTemplate).toBe('{{ messages }}');
  });

  it('never come out of text, special or not', () => {
    const ids = new Set(tokenizer.specialTokens.values());
    const piece = fc.oneof(
      fc.constantFrom(...tokenizer.specialTokens.keys()),
      fc.string({ unit: 'binary', maxLength: 5 }),
    );
    const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''));
    fc.assert(
      fc.property(text, (value) => {
        const tokens = tokenizer.encode(value);
        return !tokens.some((token) => ids.has(token)) && tokenizer.decode(tokens) === value.normalize('NFC');
      }),
    );
  });

  it('do not keep text from being encoded as the library encodes it', () => {
    const json = JSON.parse(readFileSync(join(RECORDED, 'byte-level', 'tokenizer.json'), 'utf8')) as object;
    const library = createLibrary({ ...json, added_tokens: [] }, {});
    const word = fc.oneof(
      fc.constantFrom('hello', ' world', 'aaaa', '    ', "don't", '汉字', '123'),
      fc.string({ unit: 'grapheme', maxLength: 4 }),
    );
    const text = fc.array(word, { maxLength: 40 }).map((words) => words.join(''));
    fc.assert(
      fc.property(text, (value) => {
        const expected = library.encode(value, { add_special_tokens: false }).ids;
        return expected.join() === tokenizer.encode(value).join();
      }),
    );
  });

  it('are left out on request, but not those that are only added', () => {
    for (const { trusted, skipped } of casesOf('byte-level')) {
      // Python sends added tokens through the byte alphabet, which has no é: that one becomes U+FFFD there.
      if (trusted.includes(tokenizer.tokenId('cafe\u0301'))) continue;
      expect(tokenizer.decode(trusted, { skipSpecialTokens: true })).toBe(skipped);
    }
    const tokens = [tokenizer.tokenId('<think>'), tokenizer.tokenId('<|im_end|>')];
    expect(tokenizer.decode(tokens, { skipSpecialTokens: true })).toBe('<think>');
    expect(tokenizer.decode(tokens)).toBe('<think><|im_end|>');
  });

  it('that do not exist are an error with the name of the tokenizer', () => {
    expect(() => tokenizer.tokenId('<|nope|>')).toThrow(
      new TokenizerError('byte-level has no special token "<|nope|>"'),
    );
  });
});

describe('decoding', () => {
  it('shows a cut character as Python does, and its bytes as they are', async () => {
    const tokenizer = await load('byte-level');
    for (const { plain, cut } of casesOf('byte-level')) expect(tokenizer.decode(plain.slice(0, -1))).toBe(cut);
    const tokens = tokenizer.encode('👋');
    const bytes = Array.from(tokens, (token) => [...tokenizer.decodeBytes([token])]);
    expect(bytes.flat()).toEqual([...new TextEncoder().encode('👋')]);
    expect(tokens.length).toBeGreaterThan(1);
  });

  it('drops ids that the tokenizer does not have', async () => {
    const tokenizer = await load('byte-level');
    expect(tokenizer.decode([1e6, -1, ...tokenizer.encode('hi'), 2 ** 31 - 1])).toBe('hi');
  });

  it('knows the bytes of SentencePiece tokens', async () => {
    const tokenizer = await load('sentence-piece');
    const tokens = tokenizer.encode('hi ☃');
    expect(Buffer.from(tokenizer.decodeBytes(tokens)).toString()).toBe('hi ☃');
    expect(tokenizer.decodeBytes(tokens.slice(0, -1))).toEqual(new TextEncoder().encode('hi ☃').slice(0, -1));
  });
});

describe('long texts', () => {
  it('without a break are encoded, 100,000 characters of them', async () => {
    const tokenizer = await load('byte-level');
    const text = 'ab'.repeat(50_000);
    expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
  });

  it('share nothing with what is remembered of them', async () => {
    const tokenizer = await load('byte-level');
    const first = tokenizer.encode('hello hello');
    const copy = [...first];
    first.fill(0);
    expect([...tokenizer.encode('hello hello')]).toEqual(copy);
  });
});

describe('files that make no tokenizer', () => {
  it('are refused, with what to do', async () => {
    await expect(tokenizerFromFolder(join(RECORDED, 'nowhere'))).rejects.toThrow(/no such folder or file: .*nowhere/);
    await expect(tokenizerFromFolder(RECORDED)).rejects.toThrow(
      /has neither tokenizer.json nor tiktoken.model: write one/,
    );
    expect(() => new HuggingFaceTokenizer('x', { tokenizer: {} as never })).toThrow(
      /of x has no model with a vocabulary/,
    );
    const broken = { tokenizer: { model: { type: 'BPE', vocab: {}, merges: [] }, decoder: { type: 'Nonsense' } } };
    expect(() => new HuggingFaceTokenizer('x', broken)).toThrow(TokenizerError);
  });

  it('are a TokenizerError where an added token is null', () => {
    const files = { tokenizer: { model: { type: 'BPE', vocab: {}, merges: [] }, added_tokens: [null] } };
    expect(() => new HuggingFaceTokenizer('x', files as never)).toThrow(TokenizerError);
  });

  it('may be given as one tokenizer.json, with what lies beside it', async () => {
    const tokenizer = await tokenizerFromFolder(join(RECORDED, 'byte-level', 'tokenizer.json'), 'one');
    expect(tokenizer.id).toBe('one');
    expect(tokenizer.eosTokenId).toBe(tokenizer.tokenId('<|im_end|>'));
  });
});
