import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Dashboard, serveDashboard } from 'tinker-rx/dashboard';
import { eventually, launch, open, picture } from './browser.js';

const RATES = ['1e-5', '3e-5', '1e-4', '3e-4', '1e-3'];
const NAMES = Array.from({ length: 9 }, (_, run) => `chats-rank-${run < 5 ? 16 : 64}-rate-${RATES[run % 5]}`);
const STEPS = 60;

let browser: Browser;
let dashboard: Dashboard;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nine-runs-'));
  NAMES.forEach(write);
  browser = await launch();
  dashboard = await serveDashboard({ log: folder }, { title: 'nine runs' });
});
afterAll(async () => {
  await browser?.close();
  await dashboard?.close();
  rmSync(folder, { recursive: true });
});

/** A log as `tinker-rx train --validation` writes it, of a run that ended long ago. */
function write(name: string, run: number): void {
  mkdirSync(join(folder, name));
  const config = {
    ...{ command: 'train', model: 'Qwen/Qwen3-8B', rank: run < 5 ? 16 : 64, seed: 0 },
    ...{ learningRate: Number(RATES[run % 5]), adam: { beta1: 0.9, beta2: run === 8 ? 0.99 : 0.95 } },
  };
  writeFileSync(join(folder, name, 'config.json'), JSON.stringify(config));
  const steps = Array.from({ length: STEPS }, (_, index) => ({
    ...{ index, loss: (2.4 - run * 0.1) * Math.exp(-index / (12 + run * 3)) + 0.2 + run * 0.05, lossSum: 1 },
    // Nothing was ever solved: a reward that stays at zero.
    ...{ metrics: { 'reward/mean': 0, 'optim/grad_norm': 1 + Math.sin(index + run) / 4 }, datums: 128, tokens: 20_000 },
    ...{ learningRate: Number(RATES[run % 5]) * (1 - index / STEPS), batches: index + 1, durationMs: 9000, cycles: 1 },
    atMs: Date.UTC(2026, 0, 1) + run * 1000 + index * 10_000,
    ...(index % 10 === 9
      ? { evaluations: [{ index, metrics: { validation_loss: 1.9 * Math.exp(-index / 40) + 0.4 + run * 0.05 } }] }
      : {}),
  }));
  writeFileSync(join(folder, name, 'metrics.jsonl'), steps.map((step) => `${JSON.stringify(step)}\n`).join(''));
}

const loaded = (page: Page) =>
  eventually(
    () => page.locator('[data-chart="Loss"] output > span').count(),
    (count) => count === NAMES.length,
  );
/** Brings every chart into sight, where it is drawn, until its legend names all runs. Those without values hide then. */
async function allDrawn(page: Page): Promise<void> {
  await eventually(
    () =>
      page.evaluate((runs) => {
        const late = [...document.querySelectorAll('figure:not([hidden])')].find(
          (each) => each.querySelector('canvas') === null || each.querySelectorAll('output > span').length !== runs,
        );
        late?.scrollIntoView({ behavior: 'instant' });
        return late === undefined;
      }, NAMES.length),
    (drawn) => drawn,
  );
  await page.evaluate(() => scrollTo(0, 0));
}

/** What is cut off or laid over something else: elements whose text is wider than they are, and legends that overlap their plot. */
const cutOff = (page: Page) =>
  page.evaluate(() => {
    const cut = [...document.querySelectorAll('figcaption output, figcaption output span, #runs label, .whose, dd')]
      .filter((each) => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== 'inline')
      .map((each) => each.textContent);
    const over = [...document.querySelectorAll('figure:not([hidden])')]
      .filter((each) => {
        const [caption, plot] = ['figcaption', '.plot'].map((name) =>
          each.querySelector(name)!.getBoundingClientRect(),
        );
        return caption!.bottom > plot!.top + 1;
      })
      .map((each) => each.getAttribute('data-chart'));
    return [...cut, ...over];
  });

it('nine runs have nine colours, full legends, and a table of the options in which they differ', async () => {
  const { page, problems } = await open(browser, dashboard.url, { colorScheme: 'light' });
  await loaded(page);
  const colours = async (selector: string) =>
    page.locator(selector).evaluateAll((all) => all.map((each) => getComputedStyle(each).backgroundColor));
  const legend = await colours('[data-chart="Loss"] output .swatch');
  expect(new Set(legend).size).toBe(9);
  expect(await colours('#run-rows .swatch')).toStrictEqual(legend);
  const said = await page.locator('[data-chart="Loss"] output').textContent();
  for (const name of NAMES) expect(said).toContain(name);
  expect(await cutOff(page)).toStrictEqual([]);

  const head = await page.locator('#run-head th').allTextContents();
  expect(head).toStrictEqual([
    ...['Run', 'State', 'Steps', 'Loss', 'Validation loss', 'Reward'],
    ...['rank', 'learningRate', 'adam.beta2'],
  ]);
  const last = page.locator(`#run-rows tr[data-run="${NAMES[8]}"] td`);
  expect((await last.allTextContents()).join(' | ')).toMatch(
    /^chats-rank-64-rate-3e-4 \| ended \| 60 \| 0\.\d+ \| 1\.\d+ \| 0 \| 64 \| 0\.0003 \| 0\.99$/,
  );
  // Nothing runs any more, and that is what the page says.
  expect(await page.locator('#connection').textContent()).toBe('ended');
  // The numbers are of the run whose step is the newest, and say so. Steps are counted from 1.
  expect(await page.locator('#newest').textContent()).toBe(`${NAMES[8]} the newest step of 9 runs`);
  expect(await page.locator('[data-tile="Step"] dd').textContent()).toBe('60');
  await page.locator('[data-chart="Loss"]').focus();
  for (let press = 0; press < 8; press++) await page.keyboard.press('Shift+ArrowLeft');
  expect(await page.locator('[data-chart="Loss"] output').textContent()).toMatch(/^step 1: /);
  await page.locator('#theme').focus();

  // A reward that is always zero has a line and marks on its axis.
  const reward = page.locator('[data-chart="Reward"] canvas');
  await reward.scrollIntoViewIfNeeded();
  await eventually(
    () =>
      reward.evaluate((canvas: HTMLCanvasElement) => {
        const { data } = canvas.getContext('2d')!.getImageData(0, 0, 56 * devicePixelRatio, canvas.height);
        return data.filter((value, at) => at % 4 === 3 && value > 100).length;
      }),
    (marked) => marked > 50,
  );

  // A run that is put aside is gone from every legend, and keeps its colour when it comes back.
  await page.getByLabel(NAMES[2]!).uncheck();
  await eventually(
    () => colours('[data-chart="Loss"] output .swatch'),
    (all) => all.length === 8,
  );
  await page.getByLabel(NAMES[2]!).check();
  await loaded(page);
  expect(await colours('[data-chart="Loss"] output .swatch')).toStrictEqual(legend);
  await allDrawn(page);
  await picture(page, 'nine-light');
  expect(problems).toStrictEqual([]);
});

it.each([
  ['dark', { colorScheme: 'dark' }],
  ['phone', { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }],
] as const)('nine runs are readable: %s', async (name, options) => {
  const { page, problems } = await open(browser, dashboard.url, options);
  await loaded(page);
  expect(await cutOff(page)).toStrictEqual([]);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
    page.viewportSize()!.width,
  );
  await allDrawn(page);
  await picture(page, `nine-${name}`);
  expect(problems).toStrictEqual([]);
});
