/** The command as a process of its own on a real (pseudo-)terminal, by `script` of util-linux. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { LocalTinker } from 'tinker-rx/local';
import { textWidth } from '../../src/support/terminal/textWidth.js';
import { bundleMain } from '../unit/cli/bundledMain.js';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
/** Four are enough to train on: it is the terminal that is looked at. */
const QUESTIONS = readFileSync(here('../../examples/data/questions.jsonl'), 'utf8').split('\n').slice(0, 4);
const DATA = 'questions.jsonl';
const COLUMNS = 100;
let folder: string;
let remove: () => void;
let main: string;
let local: LocalTinker;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-terminal-'));
  writeFileSync(join(folder, DATA), QUESTIONS.join('\n'));
  ({ main, remove } = await bundleMain('terminal'));
  local = await LocalTinker.start();
});
afterAll(async () => {
  await local.close();
  remove();
  rmSync(folder, { recursive: true, force: true });
});

const running: ChildProcess[] = [];
afterEach(() => {
  for (const child of running.splice(0)) child.kill('SIGKILL');
  local.controls.clockMs = 0;
});

const environment = (more: Readonly<Record<string, string>> = {}) => ({
  PATH: process.env['PATH'],
  HOME: folder,
  TERM: 'xterm',
  TINKER_BASE_URL: local.url,
  TINKER_API_KEY: local.apiKey,
  ...more,
});

/** Starts the command on a terminal; gives what the terminal shows so far, and its keyboard. */
function terminal(args: readonly string[], more: Readonly<Record<string, string>> = {}, columns = COLUMNS) {
  const words = [process.execPath, main, ...args].map((word) => `'${word}'`).join(' ');
  const child = spawn('script', ['-qec', `stty cols ${columns} rows 24; exec ${words}`, '/dev/null'], {
    cwd: folder,
    env: environment(more),
  });
  running.push(child);
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
  const code = new Promise<number | null>((resolve) => child.on('close', resolve));
  return {
    type: (keys: string) => child.stdin.write(keys),
    until: (pattern: RegExp) => vi.waitFor(() => expect(shown).toMatch(pattern), { timeout: 240_000, interval: 20 }),
    code,
    shown: () => shown,
  };
}
const CTRL_C = '\u0003';
const CTRL_D = '\u0004';

const ESCAPES = /\u001b\[[0-9;?]*[A-Za-z]/g;
/** Every state of every line that the terminal showed. */
const states = (shown: string): string[] => shown.replaceAll(ESCAPES, '').split(/[\r\n]+/);

const TRAIN = ['-m', 'tinker-rx/tiny', '--rank', '4', '--batch-size', '4'];

describe('train', () => {
  it('draws a bar that grows on one line and fits', async () => {
    local.controls.clockMs = 150;
    const { code, shown } = terminal(['train', DATA, ...TRAIN, '--epochs', '20', '--log', 'bar']);
    expect(await code).toBe(0);
    const bars = states(shown()).filter((line) => line.startsWith('train'));
    const filled = bars.map((line) => line.split('█').length - 1);
    expect(filled).toStrictEqual([...filled].sort((a, b) => a - b));
    expect(new Set(filled).size).toBeGreaterThan(2);
    expect(bars.at(-1)).toMatch(
      /^train {2}█{20,} {2}100 % {2}20\/20 steps {2}[\d.]+ steps\/s {2}0:00 left {2}loss [\d.]+ {2}2,960 tokens$/,
    );
    expect(Math.max(...bars.map(textWidth))).toBeLessThan(COLUMNS);
    // Redrawn in place: no line feed between two states of the bar.
    expect(shown()).toMatch(/\rtrain[^\n]*\rtrain/);
  });

  it('says what matters on 40 columns, and wraps nothing', async () => {
    const args = ['train', DATA, ...TRAIN, '--epochs', '20', '--log', 'narrow'];
    const { code, shown } = terminal(args, {}, 40);
    expect(await code).toBe(0);
    const bars = states(shown()).filter((line) => line.startsWith('train'));
    expect(bars.at(-1)).toMatch(/^train {2}100 % {2}20\/20 steps {2}loss \d\.\d{4}$/);
    expect(Math.max(...bars.map(textWidth))).toBeLessThan(40);
  });

  it('redraws nothing on a terminal that cannot', async () => {
    const args = ['train', DATA, ...TRAIN, '--epochs', '3', '--log', 'dumb'];
    const { code, shown } = terminal(args, { TERM: 'dumb' });
    expect(await code).toBe(0);
    expect(shown()).not.toContain('\u001b');
    expect(shown()).toContain('train: 100 %, 3/3 steps');
  });

  it('saves on Ctrl-C, says how to go on, and goes on', async () => {
    local.controls.clockMs = 300;
    const { code, shown, until, type } = terminal(['train', DATA, ...TRAIN, '--epochs', '40', '--log', 'stopped']);
    await until(/[1-9]\d?\/40 steps/);
    type(CTRL_C);
    expect(await code).toBe(130);
    expect(shown()).toContain('Finishing the steps in flight');
    const [, steps, command] = /saved after step (\d+)\. Continue with: tinker-rx (.+?)\r/.exec(shown())!;
    local.controls.clockMs = 0;
    const resumed = terminal(command!.split(' '));
    expect(await resumed.code).toBe(0);
    expect(resumed.shown()).toContain(`continuing after step ${steps}`);
    const metrics = readFileSync(join(folder, 'stopped', 'metrics.jsonl'), 'utf8')
      .trim()
      .split('\n');
    expect(metrics.map((line) => (JSON.parse(line) as { index: number }).index)).toStrictEqual(
      Array.from({ length: 40 }, (_, index) => index),
    );
  });
});

describe('chat', () => {
  it('answers, cancels a reply on Ctrl-C, and ends on Ctrl-D', async () => {
    const { code, shown, until, type } = terminal(['chat', '-m', 'tinker-rx/tiny', '--max-tokens', '12']);
    await until(/you.* › /);
    type('Hello there\r');
    await until(/Hello there[^]*\n[^]*› /);
    type('/help\r');
    await until(/\/system <text>/);
    local.controls.pause('paused_capacity', 'a test');
    type('Never answered\r');
    await until(/thinking … \d s/);
    type(CTRL_C);
    await until(/\(cancelled\)/);
    local.controls.resume();
    type(CTRL_D);
    expect(await code).toBe(0);
    expect(shown()).toContain('Talking to tinker-rx/tiny');
  });

  it('ends on Ctrl-C where nothing is under way', async () => {
    const { code, until, type } = terminal(['chat', '-m', 'tinker-rx/tiny']);
    await until(/› /);
    type(CTRL_C);
    expect(await code).toBe(0);
  });
});

describe('auth login', () => {
  afterEach(() => rmSync(join(folder, '.tinker'), { recursive: true, force: true }));

  it('masks the key', async () => {
    const { code, shown, until, type } = terminal(['auth', 'login'], { TINKER_API_KEY: '' });
    await until(/Paste your API key: /);
    type('x\u007f');
    type(local.apiKey);
    type('\r');
    expect(await code).toBe(0);
    expect(shown()).toContain('*'.repeat(local.apiKey.length - 1));
    expect(shown()).not.toContain(local.apiKey);
    expect(shown()).toContain('Logged in as local@localhost');
  });
  it('ends with 130 on Ctrl-C', async () => {
    const { code, until, type } = terminal(['auth', 'login'], { TINKER_API_KEY: '' });
    await until(/Paste your API key: /);
    type(CTRL_C);
    expect(await code).toBe(130);
  });
});

describe('output', () => {
  it('has colours on a terminal, unless NO_COLOR', async () => {
    const colourful = terminal(['model', 'list']);
    expect(await colourful.code).toBe(0);
    expect(colourful.shown()).toContain('\u001b[1mModel');
    const plain = terminal(['model', 'list'], { NO_COLOR: '1' });
    expect(await plain.code).toBe(0);
    expect(plain.shown()).not.toMatch(/\u001b\[\d+m/);
    expect(plain.shown()).toContain('tinker-rx/tiny');
  });

  it('asks for no more, and ends its session, where its reader has read enough', async () => {
    const prompts = Array.from({ length: 5000 }, (_, place) => `prompt ${place}\n`).join('');
    writeFileSync(join(folder, 'prompts.txt'), prompts);
    let ended: unknown;
    let asked = 0;
    const watched = await LocalTinker.start({
      onRequest: ({ endpoint, json }) => {
        if (endpoint === 'asample') asked++;
        if (endpoint.endsWith('/finish')) ended = json;
      },
    });
    const sample = `'${process.execPath}' '${main}' sample -m tinker-rx/tiny --file prompts.txt --max-tokens 200 --concurrency 50 -f json`;
    const { stdout, stderr } = await promisify(execFile)(
      'bash',
      ['-c', `${sample} | head -n 1 | cut -c 1-9; echo "\${PIPESTATUS[0]}"`],
      { env: environment({ TINKER_BASE_URL: watched.url, TINKER_API_KEY: watched.apiKey }), cwd: folder },
    );
    await watched.close();
    expect({ stdout, stderr }).toStrictEqual({ stdout: '{"index":\n0\n', stderr: '' });
    expect(ended).toStrictEqual({ reason: { type: 'interrupted' } });
    expect(asked).toBeLessThan(5000);
  });

  it.each([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('ends on %s with %d, having saved', async (signal, expected) => {
    local.controls.clockMs = 100;
    const args = ['train', DATA, ...TRAIN, '--epochs', '400', '--log', signal];
    const child = spawn(process.execPath, [main, ...args], { cwd: folder, env: environment(), stdio: 'ignore' });
    running.push(child);
    const ended = new Promise((resolve) => child.on('close', resolve));
    const log = (name: string) => readFileSync(join(folder, signal, `${name}.jsonl`), 'utf8');
    await vi.waitFor(() => expect(log('metrics')).toContain('"index":1'), { timeout: 240_000 });
    child.kill(signal);
    expect(await ended).toBe(expected);
    expect(log('checkpoints')).toMatch(/"name":"step-0000\d\d"/);
  });

  it('ends quietly where its reader does not read on, and on Ctrl-C while it waits', async () => {
    const command = `'${process.execPath}' '${main}' completion bash | true`;
    const { stderr } = await promisify(execFile)('bash', ['-c', command], { env: environment() });
    expect(stderr).toBe('');
    const waiting = terminal(['run', 'list', '--base-url', 'http://127.0.0.1:64999']);
    await waiting.until(/fetching training runs … \d s {2}trying again in/);
    waiting.type(CTRL_C);
    expect(await waiting.code).toBe(130);
    expect(waiting.shown()).not.toMatch(/ {4}at /);
  });
});
