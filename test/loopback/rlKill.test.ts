import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LocalTinker } from '../../src/local/index.js';

const TASKS = 24;
let folder: string;
let script: string;
let local: LocalTinker;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rl-kill-'));
  script = join(folder, 'child.mjs');
  // Node 20 runs no TypeScript: the child is bundled first.
  const input = fileURLToPath(new URL('rlKillChild.ts', import.meta.url));
  const bundle = await rolldown({ input, platform: 'node', logLevel: 'silent' });
  await bundle.write({ file: script, format: 'esm', codeSplitting: false });
  await bundle.close();
  local = await LocalTinker.start();
});
afterAll(async () => {
  await local.close();
  rmSync(folder, { recursive: true });
});

/** Runs the child until it is done, or kills it when it has said a line so often. Gives whether it was done. */
function run(dir: string, offPolicy: number, killAt?: readonly [line: string, times: number]): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [script, local.url, local.apiKey, dir, String(offPolicy)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let seen = 0;
    child.stdout.on('data', (text: Buffer) => {
      if (killAt === undefined) return;
      seen += text.toString().split(`${killAt[0]}`).length - 1;
      if (seen >= killAt[1]) child.kill('SIGKILL');
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0 || signal === 'SIGKILL') resolve(code === 0);
      else reject(new Error(`the child ended with ${code}`));
    });
  });
}

const lines = (dir: string, file: string): Record<string, unknown>[] =>
  readFileSync(join(dir, file), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
/** What does not depend on how long anything took. */
const timeless = ({ metrics, ...step }: Record<string, unknown>) => ({
  ...{ index: step['index'], lossSum: step['lossSum'], reward: step['reward'], tokens: step['tokens'] },
  metrics: Object.fromEntries(
    Object.entries(metrics as Record<string, number>).filter(
      ([name]) => !/^time\/|clock_cycle|policy\/|client\//.test(name),
    ),
  ),
});
const orders = (dir: string) =>
  lines(dir, 'rollouts.jsonl').map(({ order, traj_idx }) => `${String(order)}.${String(traj_idx)}`);
const everyRollout = Array.from({ length: TASKS * 4 }, (_, index) => `${Math.floor(index / 4)}.${index % 4}`);

describe('killed and resumed', () => {
  it('while sampling and while training, a synchronous run ends bit for bit as one that never was', async () => {
    const whole = join(folder, 'whole');
    expect(await run(whole, 0)).toBe(true);
    const killed = join(folder, 'killed');
    // In the middle of sampling before the first checkpoint; of sampling after it; right after a step, while its checkpoint is logged; of training.
    for (const at of [
      ['group-admitted', 3],
      ['group-admitted', 8],
      ['step', 3],
      ['group-finished', 6],
    ] as const) {
      expect(await run(killed, 0, at)).toBe(false);
    }
    expect(await run(killed, 0)).toBe(true);
    expect(lines(killed, 'metrics.jsonl').map(timeless)).toStrictEqual(lines(whole, 'metrics.jsonl').map(timeless));
    const said = ({ duration_ms: _, ...record }: Record<string, unknown>) => record;
    expect(lines(killed, 'rollouts.jsonl').map(said)).toStrictEqual(lines(whole, 'rollouts.jsonl').map(said));
    expect(orders(whole)).toStrictEqual(everyRollout);
  });

  it('an asynchronous run loses no group and doubles none', async () => {
    const killed = join(folder, 'async');
    for (const at of [
      ['group-admitted', 7],
      ['step', 3],
      ['group-finished', 6],
    ] as const) {
      expect(await run(killed, 2, at)).toBe(false);
    }
    expect(await run(killed, 2)).toBe(true);
    expect(orders(killed)).toStrictEqual(everyRollout);
    const steps = lines(killed, 'metrics.jsonl');
    expect(steps.map(({ index }) => index)).toStrictEqual(Array.from({ length: steps.length }, (_, index) => index));
    for (const { metrics } of steps) {
      expect((metrics as Record<string, number>)['policy/age_max']).toBeLessThanOrEqual(2);
    }
  });
});
