import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  kimiTokenizer,
  tokenizerFromFolder,
  TokenizerError,
  type Tokenizer,
} from '../../../src/chat/tokenizer/index.js';
import { rankedTokens, readRankFile } from '../../../src/chat/tokenizer/tiktoken/rankFile.js';

/** A small rank file with Kimi's pattern, and what Python's tiktoken makes of it; written by test/parity/tokenizer_golden.py. */
const RECORDED = new URL('../../parity/recorded/tokenizers/small/', import.meta.url).pathname;

interface Case {
  readonly text: string;
  readonly plain: number[];
}

describe('a folder with a rank file', () => {
  let tokenizer: Tokenizer;
  const { cases } = JSON.parse(readFileSync(join(RECORDED, 'tiktoken.json'), 'utf8')) as { cases: Case[] };
  beforeAll(async () => {
    tokenizer = await tokenizerFromFolder(join(RECORDED, 'tiktoken'), 'kimi-like');
  });

  it('encodes as in Python', () => {
    expect(cases.length).toBeGreaterThan(50);
    for (const { text, plain } of cases) expect([text, [...tokenizer.encode(text)]]).toEqual([text, plain]);
  });

  it('decodes what it encodes', () => {
    for (const { text, plain } of cases) expect(tokenizer.decode(plain)).toBe(text);
    expect(tokenizer.decode([])).toBe('');
    expect(tokenizer.decode([-1, 1e6])).toBe('');
  });

  it('names its 256 special tokens by the config, the others reserved', () => {
    const first = tokenizer.tokenId('[BOS]');
    expect(tokenizer.specialTokens.size).toBe(256);
    expect(tokenizer.vocabSize).toBe(first + 256);
    expect(tokenizer.bosTokenId).toBe(first);
    expect(tokenizer.eosTokenId).toBe(first + 1);
    expect(tokenizer.tokenId('<|reserved_token_5|>')).toBe(first + 5);
    expect(tokenizer.tokenId('<think>')).toBe(first + 22);
    expect(() => tokenizer.tokenId('<|reserved_token_2|>')).toThrow(/kimi-like has no special token/);
  });

  it('finds them in trusted text only', () => {
    const ids = new Set(tokenizer.specialTokens.values());
    for (const special of tokenizer.specialTokens.keys()) {
      expect(tokenizer.encode(`a${special}b`).some((token) => ids.has(token))).toBe(false);
      expect(tokenizer.decode(tokenizer.encode(`a${special}b`))).toBe(`a${special}b`);
      expect([...tokenizer.encodeWithSpecials(special)]).toEqual([tokenizer.tokenId(special)]);
    }
    const tokens = tokenizer.encodeWithSpecials('a<|im_end|>b');
    expect(tokenizer.decode(tokens)).toBe('a<|im_end|>b');
    expect(tokenizer.decode(tokens, { skipSpecialTokens: true })).toBe('ab');
  });
});

describe('a rank file', () => {
  it('may have gaps', () => {
    const ranks = readRankFile('YQ== 0\nYg== 1\r\n\nZA== 7\n', 'tiktoken.model');
    expect(ranks).toBe('! 0 YQ== Yg==\n! 7 ZA==');
    expect(rankedTokens(ranks)[7]).toBe('ZA==');
    expect(rankedTokens(ranks)).toHaveLength(8);
  });

  it('that is none is refused with the line', async () => {
    const wrong = new TokenizerError('tiktoken.model: line 2 is not a base64 token and its rank');
    await expect(kimiTokenizer('x', { ranks: 'YQ== 0\nversion https://git-lfs', config: {} })).rejects.toThrow(wrong);
  });

  it('without a rank for some byte ended in a trap of WebAssembly at the first text with it', async () => {
    const wrong = new TokenizerError('tiktoken.model has no rank for the byte 0: it is damaged, or not a rank file');
    await expect(kimiTokenizer('x', { ranks: 'YQ== 0\nYg== 1\n', config: {} })).rejects.toThrow(wrong);
  });

  it('with a rank of four thousand million is refused', async () => {
    const wrong = new TokenizerError('tiktoken.model: line 2 has the rank 4294967290');
    await expect(kimiTokenizer('x', { ranks: 'YQ== 0\nYg== 4294967290\n', config: {} })).rejects.toThrow(wrong);
  });
});
