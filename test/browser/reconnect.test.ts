import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
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
  await browser?.close();
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
    (said) => said === '5',
  );
  expect(await connection.textContent()).toBe('live');

  await dashboard.close();
  await eventually(
    () => connection.textContent(),
    (said) => said?.startsWith('connection lost') === true,
  );
  // What was seen is still there to be read.
  expect(await shown.textContent()).toBe('5');
  await picture(page, 'lost', false);

  steps = new Subject();
  dashboard = await serveDashboard({ steps }, { token, port });
  for (let index = 0; index < 8; index++) steps.next(step(index));
  await eventually(
    () => shown.textContent(),
    (said) => said === '8',
  );
  expect(await connection.textContent()).toBe('live');
  expect(await page.locator('[data-run="run"]').textContent()).toMatch(/^runrunning8/);
  expect(problems).toStrictEqual([]);
});

it('goes on where it was when the connection breaks, and is not sent everything again', async () => {
  const steps = new Subject<Step>();
  const served = await serveDashboard({ steps });
  const sockets = new Set<Socket>();
  // What stands between page and server, and breaks.
  const between = createServer((socket) => {
    const onward = connect(served.port, '127.0.0.1');
    for (const each of [socket, onward]) {
      sockets.add(each);
      each.on('error', () => {});
      each.on('close', () => sockets.delete(each));
    }
    socket.pipe(onward).pipe(socket);
  });
  await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve));
  const url = served.url.replace(`:${served.port}`, `:${(between.address() as AddressInfo).port}`);
  const { page, problems } = await open(browser, url);
  const asked: (string | undefined)[] = [];
  page.on('request', (request) => asked.push(request.headers()['last-event-id']));
  const shown = page.locator('[data-tile="Step"] dd');
  for (let index = 0; index < 5; index++) steps.next(step(index));
  await eventually(
    () => shown.textContent(),
    (said) => said === '5',
  );
  for (const socket of sockets) socket.destroy();
  for (let index = 5; index < 9; index++) steps.next(step(index));
  await eventually(
    () => shown.textContent(),
    (said) => said === '9',
  );
  expect(await page.locator('#connection').textContent()).toBe('live');
  expect(await page.locator('[data-run="run"]').textContent()).toMatch(/^runrunning9/);
  expect(asked.at(-1)).toMatch(/^[0-9a-f]{12}-\d+$/);
  expect(problems).toStrictEqual([]);
  await page.context().close();
  between.close();
  await served.close();
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
