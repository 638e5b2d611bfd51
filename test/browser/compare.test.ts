import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Dashboard, serveDashboard } from 'tinker-rx/dashboard';
import { launch, open, picture } from './browser.js';

let browser: Browser;
let dashboard: Dashboard;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'compare-'));
  write('a-base.eval.jsonl', 'base', (index) => index % 4 !== 0);
  write('b-tuned.eval.jsonl', 'tuned <b>', (index) => index % 4 === 1 || index > 110);
  write('c-again.eval.jsonl', 'base again', (index) => index % 4 !== 1);
  writeFileSync(join(folder, 'chats.jsonl'), '{"messages":[]}\n');
  browser = await launch();
  dashboard = await serveDashboard({ evals: folder });
});
afterAll(async () => {
  await browser?.close();
  await dashboard?.close();
  rmSync(folder, { recursive: true });
});

/** A result file of 120 examples, written by hand. */
function write(name: string, model: string, isRight: (index: number) => boolean): void {
  const protocol = {
    ...{ type: 'protocol', version: 1, model, samples: 1, samplingParams: {}, seed: 0, scorers: ['exact'] },
    ...{ passAt: 0.5, versions: {} },
  };
  const examples = Array.from({ length: 120 }, (_, index) => {
    const score = isRight(index) ? 1 : 0;
    const output = score === 1 ? `It is ${index}.` : `<script>alert(1)</script> I do not know ${index}.`;
    const sample = {
      ...{ index: 0, seed: 1, output, score, scores: { exact: score }, promptTokens: 5, sampledTokens: 5 },
      ...{ stopReason: 'stop', durationMs: 1 },
    };
    const facts = { id: `e${index}`, input: `What number comes after ${index - 1}?`, expected: `It is ${index}.` };
    return { type: 'example', ...facts, samples: [sample], failures: [], durationMs: 1 };
  });
  writeFileSync(join(folder, name), [protocol, ...examples].map((line) => `${JSON.stringify(line)}\n`).join(''));
}

it('puts two evaluations side by side: verdict, interval, and what was said', async () => {
  // The page of the runs leads to it, and back.
  const { page, problems } = await open(browser, dashboard.url, { colorScheme: 'light' });
  await page.locator('#theme').selectOption('dark');
  await page.click('#to-compare');
  // It opens on the newest file and the one before it, and on every example that changed.
  await page.waitForSelector('#verdict[data-verdict="better"]');
  expect(await page.locator('#show-changes').getAttribute('aria-pressed')).toBe('true');
  expect(await page.locator('.pair').first().locator('h3').textContent()).toMatch(/^e\d+: worse by 1\.00$/);
  // The theme is the one that was chosen there.
  expect(await page.evaluate(() => document.documentElement.dataset['theme'])).toBe('dark');
  await picture(page, 'compare-dark', false);
  await page.locator('#theme').selectOption('light');
  await page.selectOption('#before', { index: 0 });
  await page.selectOption('#after', { index: 1 });
  await page.waitForSelector('#verdict[data-verdict="worse"]');
  expect(await page.locator('#before option').allTextContents()).toEqual([
    'a-base.eval.jsonl (base)',
    'b-tuned.eval.jsonl (tuned <b>)',
    'c-again.eval.jsonl (base again)',
  ]);
  expect(await page.locator('[data-tile="Regressed"] dd').textContent()).toBe('55');
  expect(await page.locator('#verdict').textContent()).toMatch(/^The second is worse\. McNemar: p = /);
  expect(await page.locator('#interval').getAttribute('aria-label')).toMatch(
    /^difference −0\.4\d\d, from −0\.\d+ to −0\.\d+$/,
  );
  // What a model said is text, whatever it said.
  expect(await page.locator('.pair').first().textContent()).toContain('<script>alert(1)</script> I do not know');
  await picture(page, 'compare');
  expect(await page.locator('#show-changes').textContent()).toBe('Changed 57');
  expect(await page.locator('.pair').count()).toBe(57);
  await page.click('#show-improvements');
  expect(await page.locator('.pair').count()).toBe(2);
  await page.selectOption('#after', { index: 2 });
  await page.waitForSelector('#verdict[data-verdict="same"]');
  expect(await page.locator('[data-tile="Improved"] dd').textContent()).toBe('30');
  await page.setViewportSize({ width: 400, height: 800 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(400);
  await picture(page, 'compare-phone', false);
  await page.click('#to-runs');
  await page.waitForSelector('#connection[data-state="whole"]');
  expect(problems).toEqual([]);
});

it('says how to get results to compare where there are none', async () => {
  const empty = await serveDashboard({});
  const { page } = await open(browser, empty.url.replace('/?', '/compare?'));
  await page.waitForSelector('#message:has-text("--evals <folder>")');
  expect(await page.locator('#before').isVisible()).toBe(false);
  await empty.close();
});
