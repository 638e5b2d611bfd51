import type { Browser } from 'playwright-core';
import { Subject } from 'rxjs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Dashboard, serveDashboard } from 'tinker-rx/dashboard';
import type { Step } from 'tinker-rx/operators';
import { eventually, launch, open, picture } from './browser.js';

let browser: Browser;
let dashboard: Dashboard | undefined;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
  await dashboard?.close();
});

const step = (index: number): Step => ({
  index,
  loss: 1 / (index + 1),
  lossSum: 1,
  metrics: {},
  datums: 1,
  tokens: 10,
  learningRate: 1e-4,
  batches: index + 1,
  durationMs: 10,
});

it('comes back after the server restarts, and shows what is there then', async () => {
  const token = 'a-token-that-stays';
  let steps = new Subject<Step>();
  dashboard = await serveDashboard({ steps }, { token });
  const { port } = dashboard;
  const { page, problems } = await open(browser, dashboard.url);
  const connection = page.locator('#connection');
  const shown = page.locator('[data-tile="Step"] dd');
  for (let index = 0; index < 5; index++) steps.next(step(index));
  await eventually(
    () => shown.textContent(),
    (said) => said === '4',
  );
  expect(await connection.textContent()).toBe('live');

  await dashboard.close();
  await eventually(
    () => connection.textContent(),
    (said) => said?.startsWith('connection lost') === true,
  );
  // What was seen is still there to be read.
  expect(await shown.textContent()).toBe('4');
  await picture(page, 'lost', false);

  steps = new Subject();
  dashboard = await serveDashboard({ steps }, { token, port });
  for (let index = 0; index < 8; index++) steps.next(step(index));
  await eventually(
    () => shown.textContent(),
    (said) => said === '7',
  );
  expect(await connection.textContent()).toBe('live');
  expect(await page.locator('#runs').textContent()).toContain('8 steps');
  expect(problems).toStrictEqual([]);
});

it('says so when the server that came back wants another token', async () => {
  const first = await serveDashboard({}, { token: 'the-first-token' });
  const { page } = await open(browser, first.url);
  const connection = page.locator('#connection');
  await eventually(
    () => connection.textContent(),
    (said) => said === 'live',
  );
  await first.close();
  const second = await serveDashboard({}, { token: 'the-second-token', port: first.port });
  await eventually(
    () => connection.textContent(),
    (said) => said?.startsWith('refused') === true,
  );
  await second.close();
});
