import type { Browser } from 'playwright-core';
import { lastValueFrom, map, Subject, takeUntil, timer } from 'rxjs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Dashboard, serveDashboard } from 'tinker-rx/dashboard';
import { batch, mergeMapWeighted, named } from 'tinker-rx/operators';
import { fromIterable } from 'tinker-rx/sources';
import { eventually, launch, open, picture } from './browser.js';

let browser: Browser;
let dashboard: Dashboard;
beforeAll(async () => {
  browser = await launch();
  dashboard = await serveDashboard({}, { title: 'a slow judge' });
});
afterAll(async () => {
  await browser?.close();
  await dashboard?.close();
});

it('draws the pipeline as boxes, and says that the slow judge is its bottleneck', async () => {
  const stop = new Subject<void>();
  const slowly = (ms: number, budget: number) =>
    mergeMapWeighted((row: number) => timer(ms).pipe(map(() => row)), { weight: () => 1, budget });
  // Answers come fast, a judge looks at three of them at a time, and training would have room for more.
  const running = lastValueFrom(
    fromIterable(Array.from({ length: 1e5 }, (_, row) => row)).pipe(
      named('rows'),
      named('answer', slowly(5, 8)),
      named('judge', slowly(300, 3)),
      named('batch', batch({ size: 4 })),
      named(
        'train',
        mergeMapWeighted(() => timer(20), { weight: () => 1, budget: 2 }),
      ),
      takeUntil(stop),
    ),
    { defaultValue: undefined },
  );
  const { page, problems } = await open(browser, dashboard.url, { colorScheme: 'light' });
  await eventually(
    () => page.locator('#bottleneck').textContent(),
    (said) => /^The bottleneck is judge: busy (?:9\d|100) % of the time/.test(said ?? ''),
  );
  const boxes = page.locator('.operator');
  expect(
    (await boxes.evaluateAll((all) => all.map((each) => each.getAttribute('data-operator')))).sort(),
  ).toStrictEqual(['answer', 'batch', 'judge', 'rows', 'train']);
  expect(await page.locator('.operator.bottleneck').allTextContents()).toStrictEqual([
    expect.stringMatching(/^judgein \d+ · out \d+\d+ waitingbusy \d+ % · gated \d+ %$/),
  ]);
  // What comes before it waits, and is drawn left of it.
  expect(await page.locator('[data-operator="answer"]').textContent()).toMatch(/gated (?:[5-9]\d|100) %$/);
  const left = await Promise.all(
    ['rows', 'answer', 'judge', 'batch', 'train'].map(
      async (name) => (await page.locator(`[data-operator="${name}"]`).boundingBox())!.x,
    ),
  );
  expect(left).toStrictEqual([...left].sort((a, b) => a - b));
  expect(await page.locator('#flow path[marker-end]').count()).toBe(4);
  const cutOff = page.locator('.operator p').evaluateAll((all) => all.filter((p) => p.scrollWidth > p.clientWidth));
  expect(await cutOff).toStrictEqual([]);
  await page.evaluate(() => document.getElementById('pipeline')!.scrollIntoView({ behavior: 'instant' }));
  await picture(page, 'flow-light', false);
  await page.locator('#theme').selectOption('dark');
  await picture(page, 'flow-dark', false);

  const phone = await open(browser, dashboard.url, { viewport: { width: 390, height: 844 }, isMobile: true });
  await phone.page.locator('.operator.bottleneck').waitFor();
  expect(await phone.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  await phone.page.evaluate(() => document.getElementById('pipeline')!.scrollIntoView({ behavior: 'instant' }));
  await picture(phone.page, 'flow-phone', false);

  stop.next();
  await running;
  await eventually(
    () => page.locator('#bottleneck').textContent(),
    (said) => said === 'The pipeline has ended.',
  );
  expect([...problems, ...phone.problems]).toStrictEqual([]);
});
