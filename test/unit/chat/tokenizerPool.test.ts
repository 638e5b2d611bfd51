import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { firstValueFrom } from 'rxjs';
import { afterAll, describe, expect, it } from 'vitest';
import {
  ByteTokenizer,
  HuggingFaceTokenizer,
  TokenizerError,
  tokenizerFromFolder,
  TokenizerPool,
  type Tokenizer,
} from '../../../src/chat/tokenizer/index.js';

const SMALL = new URL('../../parity/recorded/tokenizers/small/', import.meta.url).pathname;
const pools: TokenizerPool[] = [];
const open = (...args: ConstructorParameters<typeof TokenizerPool>): TokenizerPool => {
  const pool = new TokenizerPool(...args);
  pools.push(pool);
  return pool;
};
afterAll(() => Promise.all(pools.map((pool) => pool.close())));

const texts = Array.from({ length: 500 }, (_, index) => `text ${index} <|im_end|> `.repeat(1 + ((index * 7919) % 50)));

describe('a pool', () => {
  it.each(['byte-level', 'tiktoken'])('gives what the %s tokenizer gives, in order', async (kind) => {
    const tokenizer = await tokenizerFromFolder(join(SMALL, kind));
    const pool = open(tokenizer, { size: 2, batchChars: 2000 });
    const encoded = await pool.encodeAll(texts);
    expect(encoded).toHaveLength(texts.length);
    encoded.forEach((tokens, index) => expect(tokens).toEqual(tokenizer.encode(texts[index]!)));
  });

  it('takes tokenizers that are in no file', async () => {
    const files = { tokenizer: { model: { type: 'BPE', vocab: { a: 0, b: 1, ab: 2 }, merges: ['a b'] } } };
    const pool = open(new HuggingFaceTokenizer('mine', files), { size: 1 });
    expect(await pool.encodeAll(['abba'])).toEqual([Int32Array.of(2, 1, 0)]);
  });

  it('encodes one text, and nothing', async () => {
    const pool = open(new ByteTokenizer(), { size: 1 });
    expect(await firstValueFrom(pool.encode('hi'))).toEqual(Int32Array.of(104, 105));
    expect(await pool.encodeAll([])).toEqual([]);
    expect(await pool.encodeAll(['', 'a', ''])).toEqual([new Int32Array(), Int32Array.of(97), new Int32Array()]);
  });

  it('forgets a text that nobody waits for', async () => {
    const pool = open(new ByteTokenizer(), { size: 1, batchChars: 1 });
    const got: string[] = [];
    pool.encode('a').subscribe(() => got.push('a'));
    pool
      .encode('b')
      .subscribe(() => got.push('b'))
      .unsubscribe();
    await firstValueFrom(pool.encode('c'));
    expect(got).toEqual(['a']);
  });

  it('passes on why a thread cannot encode', async () => {
    const tokenizer = await tokenizerFromFolder(join(SMALL, 'byte-level'));
    const broken = Object.create(tokenizer, {
      [Symbol.for('tinker-rx/tokenizer-recipe')]: { value: { kind: 'paths', id: 'gone', paths: {} } },
    }) as Tokenizer;
    await expect(open(broken, { size: 1 }).encodeAll(['a'])).rejects.toThrow(
      /a tokenizer thread failed: gone has neither/,
    );
  });

  it('fails what waits when a thread dies', async () => {
    const workerUrl = pathToFileURL(join(SMALL, 'byte-level', 'tokenizer.json'));
    const pool = open(new ByteTokenizer(), { size: 1, workerUrl });
    await expect(pool.encodeAll(['a'])).rejects.toBeInstanceOf(TokenizerError);
    await expect(pool.encodeAll(['b'])).rejects.toBeInstanceOf(TokenizerError);
  });

  it('that is closed refuses, and fails what waits', async () => {
    const pool = open(new ByteTokenizer(), { size: 1 });
    const waiting = pool.encodeAll(['a']);
    const [outcome] = await Promise.all([Promise.allSettled([waiting]), pool.close()]);
    expect(outcome[0].status).toBe('rejected');
    await expect(pool.encodeAll(['b'])).rejects.toThrow('the tokenizer pool is closed');
    await pool.close();
  });

  it('refuses what it cannot do', () => {
    const own = { id: 'own' } as Tokenizer;
    expect(() => new TokenizerPool(own)).toThrow(/own is not a tokenizer of this library/);
    expect(() => new TokenizerPool(new ByteTokenizer(), { size: 0 })).toThrow(RangeError);
    expect(() => new TokenizerPool(new ByteTokenizer(), { batchChars: 0 })).toThrow(RangeError);
    expect(() => new TokenizerPool(new ByteTokenizer(), { workerUrl: new URL('file:///nowhere.js') })).toThrow(
      /pass workerUrl/,
    );
  });
});
