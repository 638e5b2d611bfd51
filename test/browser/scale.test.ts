import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext } from 'playwright-core';
import { filter, firstValueFrom, timeout } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Dashboard, foldDashboard, fromDashboard, serveDashboard } from 'tinker-rx/dashboard';
import { eventually, launch, open, openIn, type Opened, picture } from './browser.js';

const STEPS = 100_000;
const SAMPLES = 10_000;
const START = Date.UTC(2026, 0, 1);
/** `npm run bench:browser` holds the page to its bars, on an idle machine. */
const BENCH = process.env['TINKER_RX_SUITE'] === 'bench';

/** A line as `metricsLog` writes it. */
const stepLine = (index: number): string =>
  `${JSON.stringify({
    index,
    loss: 3 * Math.exp(-index / 20_000) + 0.3 * Math.abs(Math.sin(index * 12.9898)) + (index === 70_001 ? 9 : 0),
    lossSum: 1000,
    metrics: {
      'loss:sum': 1000 + (index % 7),
      'reward/mean': 1 - Math.exp(-index / 40_000) + 0.1 * Math.sin(index * 78.233),
      'optim/grad_norm': 1 + Math.abs(Math.sin(index)),
      'clock_cycle:unique': index,
    },
    datums: 128,
    tokens: 20_000 + (index % 100),
    learningRate: 1e-4 * Math.max(0, 1 - index / STEPS),
    batches: index + 1,
    durationMs: 20_000,
    cycles: 1 + (index % 50 === 0 ? 1 : 0),
    atMs: START + index * 10_000,
  })}\n`;
const WORDS = ['the', ' sea', ' is', ' blue', ' and', ' grass', ' green', '.', ' snow', ' falls', ' on', ' hills'];
const sampleLine = (id: number): string =>
  `${JSON.stringify({
    id,
    atMs: START + id * 1000,
    prompt: `Prompt ${id}: `,
    pieces: Array.from({ length: 60 }, (_, place) => WORDS[(id * 7 + place * 5) % WORDS.length]),
    tokens: Array.from({ length: 60 }, (_, place) => (id * 7 + place * 5) % WORDS.length),
    logprobs: Array.from({ length: 60 }, (_, place) => -((id * 31 + place * 17) % 400) / 100),
    stopReason: id % 3 === 0 ? 'stop' : 'length',
    reward: (id % 11) / 10,
    length: 60,
  })}\n`;

describe('a run of 100,000 steps and 10,000 samples', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tinker-rx-dashboard-'));
  const log = join(folder, 'long');
  let browser: Browser;
  let window: BrowserContext;
  let dashboard: Dashboard;
  let opened: Opened;

  beforeAll(async () => {
    browser = await launch();
    mkdirSync(log);
    writeFileSync(join(log, 'metrics.jsonl'), Array.from({ length: STEPS }, (_, index) => stepLine(index)).join(''));
    writeFileSync(join(log, 'samples.jsonl'), Array.from({ length: SAMPLES }, (_, id) => sampleLine(id)).join(''));
    dashboard = await serveDashboard({ log: folder }, { title: 'long run' });
    // The log is read by then: it is the page that is measured.
    await firstValueFrom(
      fromDashboard(dashboard.url).pipe(
        foldDashboard(),
        filter(({ runs, samples }) => runs.get('long')?.series.length === STEPS && samples.length === SAMPLES),
        timeout(60_000),
      ),
    );
    // A browser that has shown nothing yet is still starting, and so is a new window of it.
    const small = await serveDashboard({}, { title: 'nothing yet' });
    const first = await open(browser, small.url);
    await first.page.locator('[data-tile="Step"]').waitFor();
    // The window has pages of its own, which nobody sees and nobody can wait for.
    await new Promise((resolve) => setTimeout(resolve, 2000));
    window = first.page.context();
    await small.close();
  });
  afterAll(async () => {
    await browser?.close();
    await dashboard?.close();
    rmSync(folder, { recursive: true });
  });

  /** Waits until the steps, and then everything, is on the page: milliseconds since navigation, by the page's clock. */
  const whenThere = async ({ page }: Opened): Promise<{ stepsMs: number; allMs: number }> => {
    const steps = await page.waitForFunction(
      (last) =>
        document.querySelector('[data-tile="Step"] dd')?.textContent === last &&
        document.querySelector('[data-chart="Loss"] canvas') !== null &&
        performance.now(),
      STEPS.toLocaleString('en-US'),
      { timeout: 60_000 },
    );
    const all = await page.waitForFunction(
      () =>
        document.querySelector('#sample-count')?.textContent?.endsWith('of 10,000 samples') === true &&
        performance.now(),
    );
    return { stepsMs: Number(await steps.jsonValue()), allMs: Number(await all.jsonValue()) };
  };

  it('loads', async () => {
    opened = await openIn(window, dashboard.url);
    const { stepsMs, allMs } = await whenThere(opened);
    console.log(`100,000 steps drawn after ${stepsMs.toFixed(0)} ms, with 10,000 samples after ${allMs.toFixed(0)} ms`);
    if (BENCH) expect(allMs).toBeLessThan(2000);
    expect(opened.problems).toStrictEqual([]);
  });

  it('shows new points as they arrive', async () => {
    const { page } = opened;
    let next = STEPS;
    const adding = setInterval(() => {
      appendFileSync(join(log, 'metrics.jsonl'), Array.from({ length: 5 }, () => stepLine(next++)).join(''));
    }, 100);
    const { frames, longestMs } = await page.evaluate(
      () =>
        new Promise<{ frames: number; longestMs: number }>((resolve) => {
          const start = performance.now();
          let [frames, last, longestMs] = [0, start, 0];
          const count = (now: number) => {
            frames++;
            longestMs = Math.max(longestMs, now - last);
            last = now;
            if (now - start < 5000) requestAnimationFrame(count);
            else resolve({ frames: (frames * 1000) / (now - start), longestMs });
          };
          requestAnimationFrame(count);
        }),
    );
    clearInterval(adding);
    console.log(`${frames.toFixed(1)} frames a second, the longest ${longestMs.toFixed(0)} ms`);
    if (BENCH) expect(frames).toBeGreaterThan(30);
    const step = page.locator('[data-tile="Step"] dd');
    await eventually(
      () => step.textContent(),
      (said) => said === next.toLocaleString('en-US'),
    );
    await picture(page, 'long');
  });

  it('keeps a single spike in sight', async () => {
    const { page } = opened;
    const spike = await page.evaluate(() => {
      const canvas = document.querySelector<HTMLCanvasElement>('[data-chart="Loss"] canvas')!;
      const { width, height } = canvas;
      const { data } = canvas.getContext('2d')!.getImageData(0, 0, width, height);
      // The blue of the first run in the upper part, where only the spike reaches.
      for (let at = 0; at < width * Math.floor(height * 0.35) * 4; at += 4) {
        if (data[at + 3]! > 200 && data[at + 2]! > 150 && data[at]! < 60) return true;
      }
      return false;
    });
    expect(spike).toBe(true);
  });

  it('finds among 10,000 samples', async () => {
    const { page } = opened;
    await page.locator('#search').fill('Prompt 4321:');
    await eventually(
      () => page.locator('#sample-list article').count(),
      (count) => count === 1,
    );
    await page.locator('#search').fill('');
    await page.locator('#sample-order').selectOption('best');
    await eventually(
      () => page.locator('#sample-list article').first().textContent(),
      (said) => said?.includes('reward 1') === true,
    );
    await page.locator('#sample-stop').selectOption('stop');
    await eventually(
      () => page.locator('#sample-count').textContent(),
      (said) => said?.includes('found in 10,000') === true,
    );
    expect(opened.problems).toStrictEqual([]);
  });
});
