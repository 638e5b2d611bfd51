/** Commands in this process, against the embedded service over real sockets; what they print is kept in golden/cli. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { startHub } from '../unit/cli/fakeHub.js';
import { commandHome } from './support/commandHome.js';
import { run, type FakeTerminal, type Ran } from '../unit/cli/terminal.js';

const QUESTIONS = fileURLToPath(new URL('../../examples/data/questions.jsonl', import.meta.url));
const home = commandHome();

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
/** What differs from run to run, as long as it was. */
const steady = (text: string): string =>
  text
    .replaceAll(UUID, '00000000-0000-4000-8000-000000000000')
    .replaceAll(home.local.url, 'http://127.0.0.1:12345')
    .replaceAll(home.folder, '/folder')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '2026-01-01T00:00:00.000Z');
const golden = (name: string, text: string) => expect(steady(text)).toMatchFileSnapshot(`golden/cli/${name}.txt`);
const lines = (path: string) =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { index: number; loss: number; statePath: string; samplerPath: string });
const ok = async (args: readonly string[], terminal?: FakeTerminal): Promise<Ran> => {
  const ran = await run(args, terminal);
  expect(ran.stderr).not.toContain('Error');
  expect(ran.code).toBe(0);
  return ran;
};

let log: string;
let state: string;
let sampler: string;
describe('train', () => {
  it('trains, logs, saves, and says where', async () => {
    log = join(home.folder, 'first');
    const flags = ['--rank', '8', '--batch-size', '20', '--epochs', '25', '--checkpoint-every', '10', '--seed', '1'];
    const { stdout, stderr } = await ok(['train', QUESTIONS, '-m', 'tinker-rx/tiny', ...flags, '--log', log]);
    await golden('train', stdout.replace(/Loss +[\d.]+/, 'Loss        0.1234'));
    expect(stderr).toMatch(/^questions\.jsonl: 20 examples, 726 tokens\n25 steps, learning rate 0\.01, log in /);
    const losses = lines(join(log, 'metrics.jsonl')).map(({ loss }) => loss);
    expect(losses).toHaveLength(25);
    expect(losses.at(-1)!).toBeLessThan(losses[0]! / 5);
    const saved = lines(join(log, 'checkpoints.jsonl'));
    expect(saved.map(({ statePath }) => statePath.split('/').at(-1))).toStrictEqual([
      'step-000010',
      'step-000020',
      'step-000025',
    ]);
    ({ statePath: state, samplerPath: sampler } = saved.at(-1)!);
  });

  it('does not write over a run', async () => {
    const { code, stderr } = await run(['train', QUESTIONS, '-m', 'tinker-rx/tiny', '--log', log]);
    expect(code).toBe(1);
    expect(stderr).toContain(`holds a run already\nContinue with: tinker-rx train --resume ${log}`);
  });

  it('names the row that is no conversation before it trains, or skips it', async () => {
    const data = join(home.folder, 'bad.jsonl');
    writeFileSync(data, `${readFileSync(QUESTIONS, 'utf8').trim()}\n{"no":"conversation"}\n`);
    const args = ['train', data, '-m', 'tinker-rx/tiny', '--rank', '8', '--batch-size', '20'];
    const { code, stderr } = await run([...args, '--log', join(home.folder, 'bad')]);
    expect(code).toBe(1);
    expect(stderr).toContain(`${data}:21: expected one of: messages`);
    const skipping = await ok([...args, '--skip-bad-rows', '--log', join(home.folder, 'skipped')]);
    expect(skipping.stderr).toContain('20 examples, 726 tokens, 1 bad row skipped');
  });
});

describe('lists', () => {
  it.each([
    ['run-list', ['run', 'list', '--limit', '1', '-c', 'id,model,lora,status,checkpoint'], undefined],
    ['run-list-80', ['run', 'list', '--limit', '1'], 80],
    ['run-list-50', ['run', 'list', '--limit', '1'], 50],
    ['model-list', ['model', 'list'], 80],
    ['model-list-json', ['model', 'list', 'SMALL', '-f', 'json'], undefined],
    ['session-list', ['session', 'list', '--limit', '1'], 80],
  ])('%s', async (name, args, columns) => {
    await golden(name, (await ok(args, columns === undefined ? {} : { columns })).stdout);
  });

  it('checkpoints, of one run and of all', async () => {
    const runId = state.split('/')[2]!;
    await golden('checkpoint-list', (await ok(['checkpoint', 'list', '--run-id', runId])).stdout);
    await golden('checkpoint-list-80', (await ok(['checkpoint', 'list', '--limit', '2'], { columns: 80 })).stdout);
    await golden('checkpoint-list-json', (await ok(['-f', 'json', 'checkpoint', 'list', '--run-id', runId])).stdout);
    await golden('run-info', (await ok(['run', 'info', runId])).stdout);
    await golden('run-info-json', (await ok(['run', 'info', runId, '--format', 'json'])).stdout);
    const all = JSON.parse((await ok(['checkpoint', 'list', '--limit', '0', '-f', 'json'])).stdout) as {
      checkpoints: unknown[];
    };
    expect(all.checkpoints).toHaveLength(8);
  });

  it('sessions, searched and shown', async () => {
    const { stdout } = await ok(['session', 'search', '--status', 'client_finished', '-f', 'json']);
    const { sessions } = JSON.parse(stdout) as { sessions: { session_id: string; status: { type: string } }[] };
    const id = state.split('/')[2]!.split(':')[0]!;
    expect(sessions.find(({ session_id }) => session_id === id)?.status.type).toBe('client_finished');
    await golden('session-info', (await ok(['session', 'info', id])).stdout);
    const trace = join(home.folder, 'trace.json');
    expect((await ok(['session', 'export-trace', id, '-o', trace])).stdout).toContain(`Saved to    ${trace}`);
    expect(JSON.parse(readFileSync(trace, 'utf8'))).toHaveProperty('traceEvents');
    expect((await ok(['session', 'export-trace', id, '--url-only'])).stdout).toMatch(/^http:\/\/\S+\n$/);
  });

  it('a run that is not there ends with 1', async () => {
    const { code, stderr, stdout } = await run(['run', 'info', 'nothing']);
    expect({ code, stdout }).toStrictEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^Error: Resource not found\nDetails: /);
  });
});

describe('sample and chat', () => {
  const ask = ['--temperature', '0', '--max-tokens', '20'];
  it('prints one answer bare, several with their place', async () => {
    const { stdout } = await ok(['sample', '-m', sampler, 'What is the capital of France?', ...ask]);
    expect(stdout).toBe('Paris\n');
    const input = 'What is the capital of France?\n{"prompt":"What is the capital of Japan?"}\n';
    const two = await ok(['sample', '-m', sampler, ...ask], { input });
    expect(two.stdout.split('── ').sort()).toStrictEqual(['', 'prompt 1\nParis\n', 'prompt 2\nTokyo\n']);
  });
  it('prints a JSON line a prompt', async () => {
    const { stdout } = await ok([
      'sample',
      '-m',
      sampler,
      '-f',
      'json',
      '-n',
      '2',
      '--logprobs',
      ...ask,
      'What is the capital of Italy?',
    ]);
    const { index, prompt, samples } = JSON.parse(stdout) as {
      index: number;
      prompt: string;
      samples: { text: string; stop_reason: string; tokens: number[]; logprobs: number[] }[];
    };
    expect({ index, prompt }).toStrictEqual({ index: 0, prompt: 'What is the capital of Italy?' });
    expect(samples).toHaveLength(2);
    expect(samples[0]).toMatchObject({ text: 'Rome', stop_reason: 'stop' });
    expect(samples[0]!.logprobs).toHaveLength(samples[0]!.tokens.length);
  });
  it('continues text as it is with --raw', async () => {
    const { stdout } = await ok(['sample', '-m', 'tinker-rx/tiny', '--raw', '--stop', '.', ...ask, 'The sky is']);
    expect(stdout.length).toBeGreaterThan(1);
  });
  it('goes on after a prompt that fails, and ends with 1', async () => {
    const input = `${'x'.repeat(3000)}\nWhat is the capital of France?\n`;
    const { code, stdout, stderr } = await run(['sample', '-m', sampler, ...ask], { input });
    expect(stderr).toMatch(/^Error: stdin:1: /m);
    expect(stdout).toBe('── prompt 2\nParis\n');
    expect(code).toBe(1);
  });
  it('chats over a pipe', async () => {
    const input = 'What is the capital of Egypt?\n/reset\nWhat is the capital of Japan?\n/quit\nnever read\n';
    const { stdout, stderr } = await ok(['chat', '-m', sampler, '--temperature', '0'], { input });
    expect(stdout).toBe('Cairo\nTokyo\n');
    expect(stderr).toBe('A new conversation.\n');
  });
});

describe('checkpoint', () => {
  it('is published, given a time to live, and shown', async () => {
    expect((await ok(['checkpoint', 'publish', state])).stdout).toBe('');
    await ok(['checkpoint', 'set-ttl', state, '--ttl', '7200']);
    await golden('checkpoint-info', (await ok(['checkpoint', 'info', state])).stdout);
    await ok(['checkpoint', 'unpublish', state]);
    await ok(['checkpoint', 'set-ttl', state, '--remove']);
    await golden('checkpoint-info-json', (await ok(['checkpoint', 'info', state, '-f', 'json'])).stdout);
  });

  it('is downloaded whole through a temporary export, which is deleted', async () => {
    const output = join(home.folder, 'downloads');
    const { stdout } = await ok(['checkpoint', 'download', state, '-o', output]);
    await golden('checkpoint-download', stdout);
    const target = join(output, state.slice('tinker://'.length).replace(/[/:]/g, '_'));
    expect(readdirSync(target).sort()).toStrictEqual(['adapter_config.json', 'adapter_model.safetensors']);
    expect(existsSync(`${target}.partial`)).toBe(false);
    expect((await ok(['checkpoint', 'list', '--limit', '0'])).stdout).not.toContain('external');
    const again = await run(['checkpoint', 'download', state, '-o', output]);
    expect(again.stderr).toContain('Target directory already exists');
    expect(again.code).toBe(1);
    await ok(['checkpoint', 'download', state, '-o', output, '--force']);
  });

  it('is pushed to the hub as an adapter', async () => {
    const hub = await startHub();
    vi.stubEnv('HF_ENDPOINT', hub.endpoint);
    vi.stubEnv('HF_TOKEN', 'hf_good');
    const { stdout } = await ok(['checkpoint', 'push-hf', state, '-r', 'my-adapter', '--commit-message', 'first']);
    await golden('checkpoint-push-hf', stdout.replaceAll(hub.endpoint, 'http://hub'));
    const commit = hub.seen.find(({ url }) => url === '/api/models/ada/my-adapter/commit/main')!;
    const committed = commit.body
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { value: { path?: string; summary?: string } }).value);
    expect(committed.map(({ path, summary }) => path ?? summary).sort()).toStrictEqual([
      'README.md',
      'adapter_config.json',
      'adapter_model.safetensors',
      'first',
    ]);
    const sent = hub.seen.find(({ method }) => method === 'PUT')!;
    expect(Buffer.from(sent.body, 'latin1').subarray(8, 9).toString()).toBe('{');

    hub.readme = 'from tinker://another/weights/x';
    const other = await run(['checkpoint', 'push-hf', state, '-r', 'my-adapter']);
    expect(other.stderr).toContain(
      'The repository holds a different Tinker checkpoint\nFound tinker://another/weights/x',
    );
    expect(other.code).toBe(1);
    vi.stubEnv('HF_TOKEN', 'hf_bad');
    expect((await run(['checkpoint', 'push-hf', state])).stderr).toContain('Not logged in to Hugging Face');
    await hub.close();
  });

  it('is deleted after a question', async () => {
    const runId = state.split('/')[2]!;
    const path = state.replace('step-000025', 'step-000010');
    const no = await ok(['checkpoint', 'delete', path], { input: 'n\n' });
    expect(no.stdout).toBe('Deletion cancelled.\n');
    expect(no.stderr).toContain(`  - ${path}\n`);
    const nobody = await run(['checkpoint', 'delete', path]);
    expect({ code: nobody.code, stdout: nobody.stdout }).toStrictEqual({ code: 1, stdout: '' });
    expect(nobody.stderr).toContain('Error: No answer\nUse --yes to continue without being asked.');
    expect((await ok(['checkpoint', 'delete', path], { input: 'y\n' })).stdout).toBe('Deleted 1 checkpoint(s)\n');
    const half = await run(['checkpoint', 'delete', path, path.replace('000010', '000020'), '-y', '-f', 'json']);
    expect(half.code).toBe(1);
    expect(JSON.parse(half.stdout)).toStrictEqual({
      deleted_count: 1,
      failed: [{ tinker_path: path, error: 'Resource not found' }],
    });
    const old = await ok(['checkpoint', 'delete', '--run-id', runId, '--before', '2020-01-01']);
    expect(old.stdout).toBe(`No checkpoints found for run ${runId} matching filters\n`);
    const rest = await ok(['checkpoint', 'delete', '--run-id', runId, '--type', 'sampler_weights', '-y']);
    expect(rest.stdout).toBe('Deleted 3 checkpoint(s)\n');
  });
});

describe('billing', () => {
  const hour = (offset: number) => new Date(Math.floor(Date.now() / 3_600_000 + offset) * 3_600_000).toISOString();
  it('shows usage as a table, JSON and CSV', async () => {
    const window = [hour(-1), hour(2)];
    expect((await ok(['billing', 'usage', ...window])).stdout).toMatch(/^\d+ hourly usage row\(s\)\nbucket_start /);
    const { data } = JSON.parse((await ok(['billing', 'usage', ...window, '-f', 'json'])).stdout) as { data: object[] };
    const csv = (await ok(['billing', 'usage', ...window, '--csv', '-'])).stdout.trim().split('\r\n');
    expect(csv).toHaveLength(data.length + 1);
    const file = join(home.folder, 'sessions.csv');
    expect((await ok(['billing', 'usage', ...window, '--sessions-csv', file])).stderr).toContain(`to ${file}`);
    expect(readFileSync(file, 'utf8')).toMatch(/^session_id,user_metadata\r\n/);
  });
  it('shows storage', async () => {
    expect((await ok(['billing', 'checkpoint-storage'])).stdout).toMatch(/^Current checkpoint storage\n/);
  });
});
