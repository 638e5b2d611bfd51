import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NEVER } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { APITimeoutError, ClosedError, NotFoundError, ServiceClient } from '../../../src/index.js';
import { LocalTinker } from '../../../src/local/index.js';
import { serveSampler, type ServedGateway, type ServedSampler, type ServeOptions } from '../../../src/serve/index.js';
import { Renewable } from '../../../src/serve/models/Renewable.js';
import { ServiceWatch } from '../../../src/serve/models/ServiceWatch.js';
import { bundleForNode } from '../support/bundleForNode.js';
import { renderer, scripted } from '../support/scriptedSampler.js';
import { closeAfterEach, serving, user } from './serving.js';

closeAfterEach();

const CHAT = '/v1/chat/completions';
const KEY = 'tml-key-of-the-service';
const children: ChildProcess[] = [];
let gateway: ServedGateway | undefined;
afterEach(async () => {
  await gateway?.close();
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await rm(FOLDER, { recursive: true, force: true });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Below node_modules, so that packages are found from there. */
const FOLDER = fileURLToPath(
  new URL(`../../../node_modules/.cache/tinker-rx/gateway-service-${process.pid}`, import.meta.url),
);
const CHILD = 'gatewayServiceChild.mjs';

async function startService(port: number, mode: 'active' | 'paused'): Promise<ChildProcess> {
  const child = fork(join(FOLDER, CHILD), [String(port), KEY, mode]);
  children.push(child);
  const [ready] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as unknown[];
  expect(ready).toBe('ready');
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

const lasting = (port: number, options: ServeOptions = {}): Promise<ServedGateway> =>
  serveSampler((service) => service.createSamplingClient({ baseModel: 'fake/model' }), {
    renderer,
    service: () =>
      new ServiceClient({ baseUrl: `http://127.0.0.1:${port}`, apiKey: KEY, telemetry: false, logLevel: 'silent' }),
    checkServiceMs: 1000,
    ...options,
  });

const ask = async ({ url, apiKey }: ServedGateway) => {
  const response = await fetch(`${url}${CHAT}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ messages: user('x'), max_tokens: 4 }),
  });
  await response.text();
  return { status: response.status, retryAfter: response.headers.get('retry-after') };
};
const statusOf = async (served: ServedGateway) => (await ask(served)).status;

describe('a service that is killed', () => {
  it(
    'ends every call of 50 callers, and is served again by itself after its restart',
    { timeout: 120_000 },
    async () => {
      await bundleForNode(fileURLToPath(new URL('../gatewayServiceChild.ts', import.meta.url)), FOLDER, CHILD);
      const port = await freePort();
      const first = await startService(port, 'active');
      gateway = await lasting(port);
      expect(await statusOf(gateway)).toBe(200);
      await kill(first);
      // One that runs nothing, so that its callers wait when it is killed.
      const second = await startService(port, 'paused');
      const calls = Array.from({ length: 50 }, () => ask(gateway!));
      const waiting = async () => {
        const response = await fetch(`${gateway!.url}/metrics`, { headers: { 'x-api-key': gateway!.apiKey } });
        return /requests_active (\d+)/.exec(await response.text())?.[1];
      };
      await expect.poll(waiting, { timeout: 30_000 }).toBe('50');
      await kill(second);
      expect(new Set((await Promise.all(calls)).map(({ status }) => status))).toEqual(new Set([503]));
      expect(await ask(gateway)).toEqual({ status: 503, retryAfter: '5' });
      await startService(port, 'active');
      await expect.poll(() => statusOf(gateway!), { timeout: 60_000, interval: 100 }).toBe(200);
      const again = await Promise.all(Array.from({ length: 50 }, () => statusOf(gateway!)));
      expect(new Set(again)).toEqual(new Set([200]));
    },
  );
});

it.each([
  ['the service no longer knows', new NotFoundError('no such sampler', { status: 404, headers: {}, body: '' })],
  ['was closed because another caller noticed', new ClosedError('closed')],
])('a sampler that %s is opened again, and the call succeeds', async (_why, lost) => {
  const samplers = [scripted([lost]), scripted(['fine'])];
  let opened = 0;
  const open = (): ServedSampler => samplers[opened++]!.sampler;
  gateway = await serveSampler(() => Promise.resolve(open()), { service: {} as never });
  expect(await Promise.all([statusOf(gateway), statusOf(gateway)])).toEqual([200, 200]);
  expect(opened).toBe(2);
});

it('what several callers lost at once is opened once', async () => {
  let opened = 0;
  const renewable = new Renewable(() => Promise.resolve(++opened));
  const first = await renewable.get();
  expect(await Promise.all([1, 2, 3].map(() => renewable.renew(first)))).toEqual([2, 2, 2]);
  expect(await renewable.renew(first)).toBe(2);
});

it('a sampler that cannot be opened again says so', async () => {
  const lost = new NotFoundError('no such sampler', { status: 404, headers: {}, body: '' });
  const { post } = await serving([lost]);
  expect(await post(CHAT, { messages: user('x') })).toMatchObject({ status: 404 });
});

describe('the watch', () => {
  const unanswered = () => Promise.reject(new APITimeoutError('no answer'));

  it('fails what waits when the service does not answer, and what comes after that at once', async () => {
    let answers = false;
    const watch = new ServiceWatch(() => (answers ? Promise.resolve() : unanswered()), 10);
    const waiting = new Promise((_, reject) => void watch.guard(NEVER).subscribe({ error: reject }));
    await expect(waiting).rejects.toMatchObject({ status: 503 });
    const next = new Promise((_, reject) => void watch.guard(NEVER).subscribe({ error: reject }));
    await expect(next).rejects.toMatchObject({ status: 503 });
    answers = true;
    await expect.poll(() => watch.reachable).toBe(true);
    watch.close();
  });

  it('leaves what waits alone while the service answers, even with a refusal', async () => {
    const refused = new NotFoundError('gone', { status: 404, headers: {}, body: '' });
    let looks = 0;
    const watch = new ServiceWatch(() => {
      looks++;
      return Promise.reject(refused);
    }, 5);
    let failed = false;
    const waiting = watch.guard(NEVER).subscribe({ error: () => (failed = true) });
    await expect.poll(() => looks).toBeGreaterThan(2);
    expect([failed, watch.reachable]).toEqual([false, true]);
    waiting.unsubscribe();
    watch.close();
  });
});

it('a caller that hangs up cancels its sample on the embedded service', async () => {
  const local = await LocalTinker.start();
  local.controls.pause();
  const service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
  const cancelled: boolean[] = [];
  service.events$.subscribe((event) => {
    if (event.type === 'request-abandoned') cancelled.push(event.cancelled);
  });
  gateway = await serveSampler(await service.createSamplingClient({ baseModel: 'tinker-rx/tiny' }));
  let accepted = false;
  service.events$.subscribe(({ type }) => (accepted ||= type === 'request-sent'));
  const controller = new AbortController();
  const call = fetch(`${gateway.url}${CHAT}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.apiKey}` },
    body: JSON.stringify({ messages: user('x') }),
    signal: controller.signal,
  });
  call.catch(() => undefined);
  await expect.poll(() => accepted).toBe(true);
  controller.abort();
  await expect.poll(() => cancelled).toEqual([true]);
  await gateway.close();
  await service.close();
  await local.close();
});
