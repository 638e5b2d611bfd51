import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually, launch, open, picture } from './browser.js';

const COMMAND = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'tinker-rx-log-'));
const log = join(folder, 'runs');
let browser: Browser;
let command: ChildProcess | undefined;

beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  command?.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

/** A line as `metricsLog` writes it. */
const line = (index: number, rate: number, startMs: number): string =>
  `${JSON.stringify({
    index,
    loss: 3 * Math.exp(-index / rate) + 0.02,
    lossSum: 1,
    metrics: { 'optim/grad_norm': 1 / (index + 1), 'reward/mean': index / 40 },
    datums: 8,
    tokens: 1000,
    learningRate: 1e-4,
    batches: index + 1,
    durationMs: 900,
    cycles: 1,
    atMs: startMs + index * 1000,
    ...(index === 9
      ? { checkpoint: { name: 'step-10', steps: 10, batches: 10, kept: true, statePath: 'tinker://r/weights/step-10' } }
      : {}),
  })}\n`;
const write = (run: string, from: number, to: number, rate: number, startMs = Date.UTC(2026, 0, 1)): void => {
  mkdirSync(join(log, run), { recursive: true });
  const lines = Array.from({ length: to - from }, (_, row) => line(from + row, rate, startMs)).join('');
  if (from === 0) writeFileSync(join(log, run, 'metrics.jsonl'), lines);
  else appendFileSync(join(log, run, 'metrics.jsonl'), lines);
};

it('`tinker-rx dashboard --log` shows runs that are over, one that goes on, and one that begins', async () => {
  write('first', 0, 30, 5);
  write('second', 0, 12, 8);
  command = spawn(process.execPath, [COMMAND, 'dashboard', '--log', log, '--port', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<number | null>((resolve) => command!.on('exit', resolve));
  const url = await new Promise<string>((resolve, reject) => {
    let said = '';
    command!.stdout!.on('data', (data: Buffer) => {
      said += data.toString();
      const address = /^http:\S+$/m.exec(said)?.[0];
      if (address !== undefined) resolve(address);
    });
    ended.then((code) => reject(new Error(`the command ended with ${code}`)), reject);
  });
  const { page, problems } = await open(browser, url);
  const runs = page.locator('#run-rows tr');
  await eventually(
    () => runs.allTextContents(),
    ([first, second]) => first?.startsWith('firstended30') === true && second?.startsWith('secondended12') === true,
  );
  expect(await page.locator('#checkpoint-rows tr').count()).toBe(2);
  await eventually(
    () => page.locator('[data-chart="Reward"] canvas').count(),
    (count) => count === 1,
  );

  write('second', 12, 20, 8);
  write('third', 0, 5, 3, Date.now());
  await eventually(
    () => runs.allTextContents(),
    ([, second, third]) => second?.startsWith('secondended20') === true && third?.startsWith('thirdrunning5') === true,
  );
  await eventually(
    () => page.locator('[data-chart="Loss"] output').textContent(),
    (said) => /first .*second .*third /.test(said ?? ''),
  );
  // One of them can be put aside.
  await page.getByLabel('first', { exact: true }).uncheck();
  await eventually(
    () => page.locator('[data-chart="Loss"] output').textContent(),
    (said) => /^second .*third /.test(said ?? ''),
  );
  await page.getByLabel('first', { exact: true }).check();
  await page.locator('#smoothing').fill('0.6');
  await page.locator('#logarithmic').check();
  await new Promise((resolve) => setTimeout(resolve, 500));
  await picture(page, 'log');
  expect(problems).toStrictEqual([]);

  command.kill('SIGINT');
  expect(await ended).not.toBeNull();
});
