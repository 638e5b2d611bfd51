import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Browser } from 'playwright-core';
import { launch, open } from './browser.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const EXAMPLE = `${root}/examples/app.ts`;

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

it('the example application: what was trained here is streamed into a page', { timeout: 120_000 }, async () => {
  const { TINKER_API_KEY: _, TINKER_BASE_URL: __, ...env } = process.env;
  const child = spawn(process.execPath, ['--import', 'tsx', EXAMPLE], {
    cwd: root,
    env: { ...env, TSX_TSCONFIG_PATH: 'tsconfig.build.json' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const lines: string[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the example ended with ${code}: ${lines.join('\n')}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line);
      if (line.startsWith('open ')) resolve(line.slice('open '.length));
    });
  });
  expect(Number(/trained: ([\d.]+) nats/.exec(lines[0]!)?.[1])).toBeLessThan(0.1);
  const { page, problems } = await open(browser, url);
  // What the page shows, every time it changes.
  await page.evaluate(() => {
    const output = document.querySelector('output')!;
    const seen: string[] = [];
    Object.assign(window, { seen });
    new MutationObserver(() => seen.push(output.textContent)).observe(output, { childList: true });
  });
  const ask = async (question: string, answer: string) => {
    await page.getByLabel('Question').fill(question);
    await page.keyboard.press('Enter');
    await page.waitForFunction((text) => document.querySelector('output')!.textContent === text, answer);
  };
  await ask('What is the capital of France?', 'Paris');
  const seen = await page.evaluate(() => (window as unknown as { seen: string[] }).seen);
  expect(seen.some((text) => text !== '' && text !== 'Paris' && 'Paris'.startsWith(text))).toBe(true);
  await ask('What is the capital of Japan?', 'Tokyo');
  await page.screenshot({ path: `${root}/artifacts/app.png` });
  expect(problems).toStrictEqual([]);
  child.kill('SIGTERM');
  expect((await ended)[0]).toBe(0);
});

it('takes at most 60 lines', () => {
  expect(readFileSync(EXAMPLE, 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(60);
});
