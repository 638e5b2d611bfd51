import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  ByteTokenizer,
  loadTokenizer,
  registerTokenizer,
  tokenizerForModel,
  tokenizerIdFor,
} from '../../../src/chat/tokenizer/index.js';

const FOLDER = join(new URL('../../parity/recorded/tokenizers/small/', import.meta.url).pathname, 'byte-level');

describe('tokenizerIdFor', () => {
  it.each([
    ['Qwen/Qwen3-8B', undefined, 'Qwen/Qwen3-8B'],
    ['zai-org/GLM-5.3:peft:262144', undefined, 'zai-org/GLM-5.3'],
    ['meta-llama/Llama-3.1-8B', undefined, 'thinkingmachineslabinc/meta-llama-3-instruct-tokenizer'],
    ['meta-llama/Llama-3.3-70B-Instruct:x', undefined, 'thinkingmachineslabinc/meta-llama-3-instruct-tokenizer'],
    ['meta-llama/Llama-2-7b', undefined, 'meta-llama/Llama-2-7b'],
    ['org/model/variant', undefined, 'org/model'],
    ['moonshotai/Kimi-K2.5-Text-Only', undefined, 'moonshotai/Kimi-K2.5'],
    ['any/model', 'moonshotai/Kimi-K2.5-Text-Only', 'moonshotai/Kimi-K2.5'],
    ['any/model', 'own/tokenizer:v2', 'own/tokenizer'],
    ['meta-llama/Llama-3.1-8B', 'own/tokenizer', 'own/tokenizer'],
  ])('%s with id %s is %s', (model, id, expected) => {
    expect(tokenizerIdFor(model, id)).toBe(expected);
  });
});

describe('loadTokenizer', () => {
  it('makes a tokenizer once per id', async () => {
    const [first, second] = await Promise.all([loadTokenizer(FOLDER), loadTokenizer(FOLDER)]);
    expect(second).toBe(first);
    expect(first.id).toBe(FOLDER);
  });

  it('knows the embedded models', async () => {
    const tokenizer = await tokenizerForModel('tinker-rx/small');
    expect(tokenizer).toBeInstanceOf(ByteTokenizer);
    expect(tokenizer.id).toBe('tinker-rx/small');
  });

  it('knows those registered, until they are taken back', async () => {
    const own = new ByteTokenizer('own');
    const takeBack = registerTokenizer('tinker-rx/own', () => own);
    expect(await loadTokenizer('tinker-rx/own')).toBe(own);
    takeBack();
    expect(await loadTokenizer('tinker-rx/own')).not.toBe(own);
  });

  it('says where a file was looked for in vain', async () => {
    const options = { offline: true, cacheFolder: join(FOLDER, 'none') };
    await expect(loadTokenizer('org/none', options)).rejects.toThrow(
      /org\/none\/tokenizer.json is not in the cache at .*: load it once online/,
    );
  });

  it('refuses what is no name of a repository', async () => {
    await expect(loadTokenizer('../../no/such/place', { offline: true })).rejects.toThrow(
      /is not the name of a repository/,
    );
  });
});

describe('tokenizerForModel', () => {
  it('reads no paths, as a server may have named them', async () => {
    await expect(tokenizerForModel('any/model', FOLDER, { offline: true })).rejects.toThrow(
      /is not the name of a repository/,
    );
  });

  it('reads the folder that an embedded service wrote for that model, and for no other', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tokenizer-'));
    await cp(FOLDER, folder, { recursive: true });
    await writeFile(join(folder, '.tinker-rx-model'), 'me/mine');
    const tokenizer = await tokenizerForModel('me/mine', folder, { offline: true });
    expect(tokenizer.id).toBe('me/mine');
    expect(tokenizer.decode(tokenizer.encode('Hello'))).toBe('Hello');
    await expect(tokenizerForModel('me/other', folder, { offline: true })).rejects.toThrow(
      /not the name of a repository/,
    );
    await rm(folder, { recursive: true });
  });
});
