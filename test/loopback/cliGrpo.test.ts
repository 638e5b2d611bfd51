/** `tinker-rx grpo`, on the embedded service. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { LocalTinker } from '../../src/local/index.js';
import { run } from '../unit/cli/terminal.js';

let local: LocalTinker;
let folder: string;
beforeAll(async () => {
  local = await LocalTinker.start();
});
afterAll(() => local.close());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-grpo-'));
  vi.stubEnv('NO_COLOR', '1');
  vi.stubEnv('TINKER_BASE_URL', local.url);
  vi.stubEnv('TINKER_API_KEY', local.apiKey);
  // The embedded model says many words; which of them it is paid for is what it has to find out.
  write('reward.mjs', 'export default ({ text }, { letter }) => (text.startsWith(letter) ? 1 : 0);');
  const tasks = Array.from({ length: 8 }, () => JSON.stringify({ question: 'Say something, number 7.', letter: '-' }));
  write('tasks.jsonl', tasks.join('\n'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const path = (name: string): string => join(folder, name);
const write = (name: string, text: string): void => writeFileSync(path(name), `${text}\n`);
const lines = (name: string): Record<string, unknown>[] =>
  readFileSync(path(name), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const args = (...more: string[]): string[] => [
  ...['grpo', path('tasks.jsonl'), '--reward', path('reward.mjs'), '-m', 'tinker-rx/tiny', '--max-tokens', '8'],
  ...['--group', '16', '--groups-per-batch', '4', '--log', path('run'), ...more],
];

describe('grpo', () => {
  it('raises the reward, logs rollouts, saves, and continues where it stopped', async () => {
    const first = await run(args('--steps', '3', '--learning-rate', '1e-3', '--checkpoint-every', '2', '--dashboard'));
    expect(first.stderr).toMatch(/Dashboard: http:\/\//);
    expect(first.stderr).toMatch(/8 tasks/);
    expect(first.code, first.stderr).toBe(0);
    expect(first.stderr).toMatch(/reward \d\.\d{3}/);
    expect(first.stderr).not.toMatch(/ loss /);
    expect(first.stdout).toMatch(/Sampler\s+tinker:\/\//);
    const steps = lines('run/metrics.jsonl').map(({ reward }) => reward as number);
    // As many steps as were asked for, also where some batches teach nothing.
    expect(steps).toHaveLength(3);
    expect(steps.at(-1)).toBeGreaterThan(steps[0]!);
    expect(lines('run/rollouts.jsonl').length).toBeGreaterThanOrEqual(steps.length * 4 * 16);
    const again = await run(['grpo', '--resume', path('run')]);
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('finished already') as string]);
  });

  it('warns of a temperature, which changes what is trained on', async () => {
    const { code, stderr } = await run(args('--steps', '1', '--temperature', '0.8'));
    expect(stderr).toMatch(/Warning: sampling at temperature 0.8/);
    expect(code, stderr).toBe(0);
  });

  it('--calibrate says what there is to learn, and trains nothing', async () => {
    const { code, stdout, stderr } = await run(args('--calibrate', '4', '--format', 'json'));
    expect(code, stderr).toBe(0);
    const found = JSON.parse(stdout) as Record<string, number>;
    expect(found).toMatchObject({ tasks: 4, group: 16 });
    expect(found['mixed']! + found['allGood']! + found['allBad']!).toBeCloseTo(1);
    const answers = found['answers'] as unknown as { reward: number; text: string }[];
    expect(answers.length).toBeGreaterThanOrEqual(3);
    for (const { reward, text } of answers) expect([typeof reward, typeof text]).toStrictEqual(['number', 'string']);
    expect(existsSync(path('run'))).toBe(false);
  });

  it('--calibrate fails where no group has a spread of rewards', async () => {
    write('nothing.mjs', 'export default () => 0;');
    const { code, stdout, stderr } = await run(args('--calibrate', '2', '--reward', path('nothing.mjs')));
    expect([code, stderr]).toEqual([1, expect.stringMatching(/nothing to learn.*\n.*too hard/s) as string]);
    // That is when people need to read them.
    expect(stdout).toMatch(/Some answers, the best and the worst of a task:\n {2}0\.000 {2}/);
  });

  it('is no success where no group has a spread of rewards', async () => {
    write('nothing.mjs', 'export default () => 0;');
    const { code, stderr } = await run([
      ...args('--steps', '1', '--reward', path('nothing.mjs')),
      ...['--log', path('none'), '--group', '2', '--groups-per-batch', '2'],
    ]);
    expect([code, stderr]).toEqual([1, expect.stringContaining('nothing was trained') as string]);
    // The tasks are not repeated for ever, and the answers can be read.
    expect(stderr).toContain('Stopping: 16 groups in a row taught nothing, a whole pass over the tasks.');
    expect(lines('none/rollouts.jsonl')).toHaveLength(32);
  });

  it('--steps counts optimizer steps, also where some batches teach nothing', async () => {
    write('half.mjs', 'export default ({ text }, { teaches }) => (teaches ? text.length : 0);');
    const tasks = Array.from({ length: 8 }, (_, index) => JSON.stringify({ question: 'Say.', teaches: index < 4 }));
    write('tasks.jsonl', tasks.join('\n'));
    const flags = ['--reward', path('half.mjs'), '--group', '4', '--learning-rate', '1e-5'];
    const { code, stderr } = await run([...args('--steps', '3', ...flags)]);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('3 steps of 4 × 4 rollouts');
    expect(lines('run/metrics.jsonl')).toHaveLength(3);
    expect(lines('run/checkpoints.jsonl').at(-1)).toMatchObject({ steps: 3 });
    // Without --steps it says how many there can be, and why there were fewer.
    const passes = await run([...args('--epochs', '2', ...flags), '--log', path('passes')]);
    expect(passes.stderr).toContain('Up to 4 steps of 4 × 4 rollouts');
    expect(passes.stderr).toContain('Fewer steps than there could be: a batch whose answers all have the same reward');
    expect(lines('passes/metrics.jsonl')).toHaveLength(2);
  });

  it('shows one line for each kind of failure of a reward, and says which line fails', async () => {
    write('typo.mjs', 'export default ({ text }, task) => {\n  return task.anwser.trim() === text ? 1 : 0;\n};');
    const { code, stderr } = await run([...args('--steps', '3', '--reward', path('typo.mjs')), '--log', path('typo')]);
    expect(code).toBe(1);
    const told = stderr.split('\n').filter((line) => line.includes('TypeError'));
    expect(told.length).toBeLessThanOrEqual(3);
    expect(stderr).toMatch(/typo\.mjs:2:/);
    expect(stderr).not.toContain('different reward');
    expect(stderr).toMatch(/Error: all rollouts of \d+ groups in a row failed/);
  });

  it('says what a reward module should export, and what is wrong with a task', async () => {
    write('wrong.mjs', 'export const reward = 1;');
    expect((await run(args('--reward', path('wrong.mjs')))).stderr).toMatch(/exports no reward\n.*export default/);
    write('tasks.jsonl', '{"frage": "?"}');
    const { stderr } = await run(args('--calibrate', '1'));
    expect(stderr).toMatch(/none of messages, prompt, question, input and text/);
    expect((await run(['grpo', path('tasks.jsonl'), '-m', 'x'])).code).toBe(2);
  });
});
