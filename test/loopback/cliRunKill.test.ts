/** Runs of the command that are killed and resumed: what they spent is counted, and no two of them share a folder. */
import { spawn, type ChildProcess } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { LocalTinker } from '../../src/local/index.js';
import { bundleMain } from '../unit/cli/bundledMain.js';
import { run } from '../unit/cli/terminal.js';

let local: LocalTinker;
let command: Awaited<ReturnType<typeof bundleMain>>;
let folder: string;
const children = new Set<ChildProcess>();
beforeAll(async () => {
  [local, command] = await Promise.all([LocalTinker.start(), bundleMain('kill')]);
}, 120_000);
afterAll(async () => {
  command.remove();
  await local.close();
});
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-kill-'));
  vi.stubEnv('NO_COLOR', '1');
  vi.stubEnv('TINKER_BASE_URL', local.url);
  vi.stubEnv('TINKER_API_KEY', local.apiKey);
  const row = (index: number) => ({
    messages: [
      { role: 'user', content: `Number ${index}?` },
      { role: 'assistant', content: `It is ${index * 7}.` },
    ],
  });
  writeFileSync(
    path('rows.jsonl'),
    Array.from({ length: 40 }, (_, index) => `${JSON.stringify(row(index))}\n`).join(''),
  );
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

const path = (name: string): string => join(folder, name);
const lines = (name: string): Record<string, unknown>[] =>
  existsSync(path(name))
    ? readFileSync(path(name), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
    : [];

/** Starts the command as a process of its own. */
function start(args: readonly string[]): ChildProcess & { readonly ended: Promise<number | null> } {
  const child = spawn(process.execPath, [command.main, ...args], { stdio: 'ignore', env: process.env });
  children.add(child);
  const ended = new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)));
  return Object.assign(child, { ended });
}
const until = (check: () => boolean) => vi.waitFor(() => expect(check()).toBe(true), { timeout: 240_000, interval: 5 });
const kill = async (child: ReturnType<typeof start>) => {
  child.kill('SIGKILL');
  await child.ended;
};
const train = (...more: string[]): string[] => [
  ...['train', path('rows.jsonl'), '-m', 'tinker-rx/tiny', '--rank', '4', '--batch-size', '4', '--ahead', '0'],
  ...['--log', path('run'), '--checkpoint-every', '2', ...more],
];
const cost = (step: Record<string, unknown> | undefined) =>
  (step?.['metrics'] as Record<string, number>)['cost/tokens']!;

describe('a budget', () => {
  it('counts what a killed process spent, and holds without the flag on resume', async () => {
    // As large as ten steps; the run would take a hundred.
    const perStep = 300;
    const child = start(train('--steps', '100', '--budget-tokens', String(10 * perStep)));
    await until(() => lines('run/metrics.jsonl').length >= 3);
    await kill(child);
    const killedAt = cost(lines('run/metrics.jsonl').at(-1));
    const again = await run(['train', '--resume', path('run')]);
    expect(again.code, again.stderr).toBe(0);
    expect(again.stdout).toMatch(/Stopped\s+the budget of 3,000 tokens is spent/);
    const steps = lines('run/metrics.jsonl');
    // Steps after the newest checkpoint were paid twice, and count twice.
    expect(cost(steps[steps.length - 1])).toBeGreaterThanOrEqual(killedAt);
    expect(cost(steps.at(-1))).toBeLessThan(10 * perStep + 2 * perStep);
    const spent = lines('run/cost.jsonl').reduce((sum, { trained }) => sum + (trained as number), 0);
    expect(spent).toBe(cost(steps.at(-1)));
    const third = await run(['train', '--resume', path('run')]);
    expect(third.stdout).toMatch(/Stopped\s+the budget of 3,000 tokens is spent/);
    expect(third.stderr).toMatch(/Continue with a larger budget: .* --budget-tokens 6000/);
    expect(third.stderr).not.toContain('finished already');
    expect(lines('run/metrics.jsonl')).toHaveLength(steps.length);
  });

  it('goes on counting after a line of cost.jsonl that was cut off, and names it', async () => {
    const first = await run(train('--steps', '2'));
    expect(first.code, first.stderr).toBe(0);
    const before = cost(lines('run/metrics.jsonl').at(-1));
    writeFileSync(path('run/cost.jsonl'), `${readFileSync(path('run/cost.jsonl'), 'utf8')}{"trained": 12`);
    const again = await run(['train', '--resume', path('run'), '--budget-tokens', '1']);
    expect(again.stderr).toContain(`${path('run/cost.jsonl')}:3 is cut off and not counted`);
    expect(again.stdout).toContain(`${before.toLocaleString('en-US')} tokens`);
    expect(again.code).toBe(0);
  });
});

describe('a log folder', () => {
  it('belongs to one process, and one that is killed leaves it to the next', async () => {
    const child = start(train('--steps', '100000'));
    await until(() => lines('run/metrics.jsonl').length >= 3);
    const beside = await run(['train', '--resume', path('run')]);
    expect(beside.stderr).toMatch(new RegExp(`${path('run')} is in use by process ${child.pid}`));
    expect(beside.code).toBe(1);
    const second = await run(train('--steps', '1'));
    expect([second.code, second.stderr]).toEqual([1, expect.stringMatching(/in use by process|holds a run already/)]);
    await kill(child);
    expect(existsSync(path('run/lock'))).toBe(true);
    const again = await run(['train', '--resume', path('run'), '--budget-tokens', '1']);
    expect(again.code, again.stderr).toBe(0);
    expect(existsSync(path('run/lock'))).toBe(false);
  });

  it('is taken by one of two that start at once', async () => {
    const both = await Promise.all([run(train('--steps', '3')), run(train('--steps', '3'))]);
    expect(both.map(({ code }) => code).sort()).toStrictEqual([0, 1]);
    expect(both.map(({ stderr }) => stderr).join('')).toMatch(/is in use by process \d+/);
    expect(lines('run/metrics.jsonl')).toHaveLength(3);
  });
});

describe('data that goes bad during a run', () => {
  const bad = 'not a row\n';

  it('is found before the first step, also with --steps', async () => {
    appendFileSync(path('rows.jsonl'), bad);
    const { code, stderr } = await run(train('--steps', '3'));
    expect([code, stderr]).toEqual([1, expect.stringContaining('rows.jsonl:41: ') as string]);
    expect(lines('run/metrics.jsonl')).toHaveLength(0);
  });

  it.each([
    ['train', () => train('--steps', '100000')],
    [
      'dpo',
      () => {
        const pair = (index: number) => ({ prompt: `Number ${index}?`, chosen: 'One.', rejected: 'Two.' });
        writeFileSync(path('rows.jsonl'), Array.from({ length: 8 }, (_, i) => `${JSON.stringify(pair(i))}\n`).join(''));
        return ['dpo', ...train('--steps', '100000').slice(1)];
      },
    ],
  ])('%s saves what it has trained, and continues without the bad row', async (name, args) => {
    const running = run(args());
    await until(() => lines('run/metrics.jsonl').length >= 3);
    appendFileSync(path('rows.jsonl'), bad);
    const { code, stderr } = await running;
    expect(code).toBe(1);
    expect(stderr).toMatch(/Error: .*rows\.jsonl:\d+: /);
    const steps = lines('run/metrics.jsonl').length;
    expect(lines('run/checkpoints.jsonl').at(-1)).toMatchObject({ steps });
    expect(stderr).toContain(
      `Continue from step ${steps} with: tinker-rx ${name} --resume ${path('run')} --skip-bad-rows`,
    );
    const budget = String(1000 + cost(lines('run/metrics.jsonl').at(-1)));
    const again = await run([name, '--resume', path('run'), '--skip-bad-rows', '--budget-tokens', budget]);
    expect(again.code, again.stderr).toBe(0);
    expect(lines('run/metrics.jsonl').length).toBeGreaterThan(steps);
  });
});

describe('grpo, stopped within a batch', () => {
  const STEPS = 4;
  const grpo = (log: string): string[] => [
    ...['grpo', path('tasks.jsonl'), '--reward', path('reward.mjs'), '-m', 'tinker-rx/tiny', '--max-tokens', '6'],
    ...[
      '--group',
      '4',
      '--groups-per-batch',
      '4',
      '--learning-rate',
      '1e-4',
      '--steps',
      String(STEPS),
      '--log',
      path(log),
    ],
  ];
  /** What does not depend on how long anything took. */
  const learned = (log: string) =>
    lines(`${log}/metrics.jsonl`).map(({ index, lossSum, reward, tokens }) => ({ index, lossSum, reward, tokens }));
  const rollouts = (log: string) =>
    lines(`${log}/rollouts.jsonl`).map(({ order, traj_idx: place, total_reward: reward }) => ({
      order,
      place,
      reward,
    }));
  const isWithinBatch = (log: string, steps: number) => {
    const groups = lines(`${log}/rollouts.jsonl`).length / 4;
    return groups > 4 * steps && groups < 4 * (steps + 1);
  };
  beforeEach(() => {
    const tasks = Array.from({ length: 8 }, (_, n) => `${JSON.stringify({ question: `Say ${n}.`, n })}\n`);
    writeFileSync(path('tasks.jsonl'), tasks.join(''));
    // While a file is there, the last group of the second batch is not graded: the batch is not full.
    writeFileSync(
      path('reward.mjs'),
      `import { existsSync } from 'node:fs';
      import { setTimeout } from 'node:timers/promises';
      export default async ({ turn }, { n }) => {
        while (n === 7 && existsSync(${JSON.stringify(path('hold'))})) await setTimeout(5);
        return -turn.sequence.tokens.length;
      };`,
    );
  });

  it.each(['Ctrl-C', 'kill -9'])('by %s, and resumed, ends as a run that never was', async (how) => {
    const whole = await run(grpo('whole'));
    expect(whole.code, whole.stderr).toBe(0);
    writeFileSync(path('hold'), '');
    if (how === 'Ctrl-C') {
      const interrupted$ = new Subject<void>();
      const running = run(grpo('stopped'), { interrupted$ });
      await until(() => isWithinBatch('stopped', 1));
      interrupted$.next();
      const { code, stderr } = await running;
      expect(code, stderr).toBe(130);
      expect(stderr).toContain('Stopped; saved after step 1.');
      expect(lines('stopped/metrics.jsonl')).toHaveLength(1);
    } else {
      const child = start([...grpo('stopped'), '--checkpoint-every', '1']);
      await until(() => isWithinBatch('stopped', 1));
      await kill(child);
    }
    rmSync(path('hold'));
    const again = await run(['grpo', '--resume', path('stopped')]);
    expect(again.code, again.stderr).toBe(0);
    expect(learned('stopped')).toStrictEqual(learned('whole'));
    expect(learned('stopped')).toHaveLength(STEPS);
    expect(rollouts('stopped')).toStrictEqual(rollouts('whole'));
  });
});
