import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HubRepository } from '../../../src/cli/checkpoint/hub/HubRepository.js';
import { HubSettings } from '../../../src/chat/tokenizer/hub/HubSettings.js';
import { matchesGlob } from '../../../src/cli/checkpoint/hub/matchesGlob.js';
import { modelCard } from '../../../src/cli/checkpoint/hub/modelCard.js';
import { withHttp } from '../../../src/cli/http.js';
import { startHub, type FakeHub } from './fakeHub.js';

let folder: string;
let hub: FakeHub;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-hub-'));
  hub = await startHub();
});
afterEach(async () => {
  rmSync(folder, { recursive: true });
  await hub.close();
});

describe('HubRepository', () => {
  const BYTES = 'weights'.repeat(20_000);
  const push = () => {
    writeFileSync(join(folder, 'a.bin'), BYTES);
    writeFileSync(join(folder, 'README.md'), '# hello');
    const files = ['a.bin', 'README.md'].map((name) => ({ path: join(folder, name), name }));
    return withHttp(async (http) => {
      const repository = await HubRepository.open(http, 'hf_good', hub.endpoint);
      await repository.create('ada/adapter', 'v1', true);
      const progress: [string, number][] = [];
      const url = await repository.commit('ada/adapter', files, {
        revision: 'v1',
        message: 'Upload',
        createPr: true,
        onUpload: (name, fraction) => progress.push([name, fraction]),
      });
      return { url, progress };
    });
  };
  const oid = createHash('sha256').update(BYTES).digest('hex');

  it('uploads large files to the store and the rest with the commit', async () => {
    const { url, progress } = await push();
    expect(url).toBe(`${hub.endpoint}/commit/1`);
    expect(progress.at(-1)).toStrictEqual(['a.bin', 1]);
    const sent = (method: string, part: string) =>
      hub.seen.find((request) => request.method === method && request.url.includes(part))!;
    expect(JSON.parse(sent('POST', '/api/repos/create').body)).toMatchObject({ name: 'adapter', organization: 'ada' });
    expect(sent('POST', '/api/repos/create').body).toContain('private');
    expect(sent('POST', '/branch/v1').token).toBe('Bearer hf_good');
    expect(sent('PUT', `/store/${oid}`).body).toBe(BYTES);
    // The store is somebody else: it must not see the token.
    expect(sent('PUT', `/store/${oid}`).token).toBeUndefined();
    const commit = sent('POST', '/api/models/ada/adapter/commit/v1?create_pr=1').body.trim().split('\n');
    expect(commit.map((line) => (JSON.parse(line) as { value: { path?: string } }).value.path)).toEqual(
      expect.arrayContaining([undefined, 'a.bin', 'README.md']),
    );
    expect(commit.join('\n')).toContain(Buffer.from('# hello').toString('base64'));
  });

  it('sends no bytes that the hub has already', async () => {
    hub.have.add(oid);
    await push();
    expect(hub.seen.some(({ method }) => method === 'PUT')).toBe(false);
  });

  it('says who the token belongs to, or that it is no good', async () => {
    const whoami = (token: string) =>
      withHttp(async (http) => (await HubRepository.open(http, token, hub.endpoint)).whoami());
    expect(await whoami('hf_good')).toBe('ada');
    await expect(whoami('hf_bad')).rejects.toThrow('Not logged in to Hugging Face');
  });
});

it('finds the token where the Python library does', () => {
  const tokenOf = (env: Record<string, string>) => new HubSettings({ env }).token;
  expect(tokenOf({ HF_TOKEN: ' hf_env ', HF_HOME: folder })).toBe('hf_env');
  expect(tokenOf({ HF_TOKEN: 'hf_env', HF_HUB_DISABLE_IMPLICIT_TOKEN: '1' })).toBe('hf_env');
  writeFileSync(join(folder, 'token'), 'hf_file\n');
  expect(tokenOf({ HF_HOME: folder })).toBe('hf_file');
  expect(tokenOf({ HF_HOME: join(folder, 'none') })).toBeUndefined();
});

it.each([
  ['a.json', '*.json', true],
  ['sub/a.json', '*.json', true],
  ['a.json', 'b*', false],
  ['a+b.txt', 'a+b.t?t', true],
  ['a.bin', '[ab].bin', true],
  ['a.bin', '[!ab].bin', false],
  ['dir/x', 'dir/', true],
  ['axjson', 'a.json', false],
])('%s matches %s: %s', (name, pattern, matches) => expect(matchesGlob(name, pattern)).toBe(matches));

it('describes an adapter', () => {
  const card = modelCard('tinker://run/weights/x', 'ada/adapter', {
    baseModel: 'Qwen/Qwen3-8B',
    isLora: true,
    loraRank: 32,
    trainMlp: true,
    trainAttn: true,
    trainUnembed: false,
  } as never);
  expect(card).toContain('base_model: Qwen/Qwen3-8B\nlibrary_name: peft\ntags:\n- tinker\n- peft\n- lora\n');
  expect(card).toContain('- rank: 32\n- trained: attn, mlp\n');
});
