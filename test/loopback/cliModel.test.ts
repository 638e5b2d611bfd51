/** `local --model` and `demo --model`: folders, GGUF files and repositories of the hub. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Subject } from 'rxjs';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ServiceClient } from 'tinker-rx';
import { LocalTinker } from 'tinker-rx/local';
import { runCli } from '../../src/cli/program.js';
import { HubServer } from '../unit/chat/tokenizerHubServer.js';
import { run, surroundings } from '../unit/cli/terminal.js';

const recorded = (...path: string[]) =>
  fileURLToPath(new URL(`../parity/recorded/architectures/${path.join('/')}`, import.meta.url));
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-model-'));
  vi.stubEnv('NO_COLOR', '1');
  vi.stubEnv('HF_HUB_CACHE', join(folder, 'cache'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

/** Runs `local` with these flags until it is ready, then `use`, then Ctrl-C. */
async function withLocal(flags: readonly string[], use: (url: string, stderr: string) => Promise<void>): Promise<void> {
  const interrupted$ = new Subject<void>();
  const { surroundings: around, written } = surroundings({ interrupted$, columns: 120 });
  const ended = runCli(['local', '--key', 'tml-mine', ...flags], around);
  await vi.waitFor(() => expect(written.stderr).toMatch(/Ready/), { timeout: 240_000, interval: 10 });
  await use(/TINKER_BASE_URL=(\S+)/.exec(written.stdout)![1]!, written.stderr);
  interrupted$.next();
  expect(await ended).toBe(0);
}

it('trains and samples a GGUF file with its own tokenizer', async () => {
  await withLocal(['--model', recorded('llama', 'model.gguf'), '--threads', '1'], async (baseUrl, stderr) => {
    expect(stderr).toMatch(/loading model into memory.*100 %/);
    const service = new ServiceClient({ baseUrl, apiKey: 'tml-mine' });
    const trainer = await service.createLoraTrainingClient({ baseModel: 'model', rank: 4 });
    const tokenizer = await trainer.getTokenizer();
    expect([...tokenizer.encodeWithSpecials('hello 12<|control1|>')]).toEqual([260, 32, 262, 265]);
    const sampler = await trainer.saveWeightsAndGetSamplingClient();
    const renderer = await sampler.getRenderer('chat_template');
    expect(renderer.tokenizer.decode(tokenizer.encode('hello'))).toBe('hello');
    const prompt = renderer.buildGenerationPrompt([{ role: 'user', content: 'hello' }]);
    const { sequences } = await sampler.sample({ prompt, samplingParams: { maxTokens: 3, temperature: 0 } });
    expect(sequences[0]!.tokens.length).toBeGreaterThan(0);
    await service.close();
  });
});

it('fetches a repository of the hub in several files, and needs no network the second time', async () => {
  const files = Object.fromEntries(
    readdirSync(recorded('llama'))
      .filter((name) => /safetensors|config\.json/.test(name))
      .map((name) => [name, { content: readFileSync(recorded('llama', name)), isLarge: /\.safetensors$/.test(name) }]),
  );
  await using hub = await HubServer.start(files);
  vi.stubEnv('HF_ENDPOINT', hub.url);
  const list = async (baseUrl: string) => {
    vi.stubEnv('TINKER_API_KEY', 'tml-mine');
    expect((await run(['model', 'list', '--base-url', baseUrl])).stdout).toContain('org/name');
  };
  await withLocal(['--model', 'org/name'], list);
  expect(hub.requests('GET').filter((url) => url.includes('model-0000'))).toHaveLength(2);
  vi.stubEnv('HF_HUB_OFFLINE', '1');
  const before = hub.seen.length;
  await withLocal(['--model', 'org/name'], list);
  expect(hub.seen.length).toBe(before);
  // A program finds it the same way.
  await using local = await LocalTinker.start({ models: ['org/name'], threads: 1 });
  expect(local.baseModels[0]).toBe('org/name');
  await expect(LocalTinker.start({ models: ['org/other'] })).rejects.toThrow(/org\/other.*not in the cache/);
  await expect(LocalTinker.start({ models: ['./org/name'] })).rejects.toThrow('There is no folder or file ./org/name');
});

it('says what is wrong with a model', async () => {
  const missing = await run(['local', '--model', './nothing']);
  expect(missing.stderr).toContain('Cannot find the model ./nothing: it is no folder and no file here');
  expect(missing.code).toBe(1);
  const broken = await run(['local', '--model', folder]);
  expect(broken.stderr).toContain('has no config.json');
  expect(broken.code).toBe(1);
});

it('the demo asks before it downloads, and stops at anything but yes', async () => {
  const { code, stderr, stdout } = await run(['demo', '--model', 'smollm2'], { input: 'no\n' });
  expect(stderr).toContain(
    'This downloads HuggingFaceTB/SmolLM2-135M-Instruct (270 MB) from https://huggingface.co into ',
  );
  expect(stdout).toBe('');
  expect(code).toBe(0);
});
