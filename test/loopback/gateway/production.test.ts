import { connect, type Socket } from 'node:net';
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import type { AccessEntry, ServedGateway } from '../../../src/serve/index.js';
import { scripted } from '../support/scriptedSampler.js';
import { closeAfterEach, model, serving, user } from './serving.js';

closeAfterEach();

const CHAT = '/v1/chat/completions';
const ask = { messages: user('x') };
const get = async ({ url }: ServedGateway, path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(`${url}${path}`, { headers });
  return { status: response.status, text: await response.text() };
};

it('says that it is well, to anybody', async () => {
  const gateway = await serving(['x']);
  expect(await get(gateway, '/healthz')).toEqual({ status: 200, text: '{"status":"ok","service":"reachable"}' });
});

it('counts requests and tokens for Prometheus, behind the key', async () => {
  const gateway = await serving(['fine']);
  await gateway.post(CHAT, ask);
  await gateway.post(CHAT, { messages: [] });
  expect((await get(gateway, '/metrics')).status).toBe(401);
  const { text } = await get(gateway, '/metrics', { 'x-api-key': gateway.apiKey });
  expect(text).toContain('tinker_rx_requests_total{route="/v1/chat/completions",status="200",key="main"} 1');
  expect(text).toContain('tinker_rx_requests_total{route="/v1/chat/completions",status="400",key="main"} 1');
  expect(text).toContain('tinker_rx_tokens_total{kind="sampled"} 5');
  expect(text).toContain('tinker_rx_request_seconds_count 2');
});

it('gives every request an id, and tells the access log of it', async () => {
  const entries: AccessEntry[] = [];
  const gateway = await serving(['fine'], { onRequest: (entry) => entries.push(entry) });
  const own = await gateway.post(CHAT, ask, { 'x-request-id': 'mine-1' });
  const { headers } = await gateway.post(CHAT, ask, { authorization: 'Bearer nobody-knows' });
  expect(own.headers.get('x-request-id')).toBe('mine-1');
  await expect.poll(() => entries.length).toBe(2);
  expect(entries).toMatchObject([
    { requestId: 'mine-1', method: 'POST', path: CHAT, status: 200, key: 'main' },
    { requestId: headers.get('x-request-id'), status: 401, key: undefined },
  ]);
});

describe('several keys', () => {
  it('have models and limits of their own', async () => {
    const keys = [
      { key: 'key-of-alice', name: 'alice', models: ['other'] },
      { key: 'key-of-bob-1', name: 'bob', maxRequests: 1 },
    ];
    const gateway = await serving(['fine'], { keys }, { delayMs: 100 });
    const as = (key: string) => ({ authorization: `Bearer ${key}` });
    expect(await gateway.post(CHAT, ask, as('key-of-alice'))).toMatchObject({ status: 404 });
    expect((await get(gateway, '/v1/models', as('key-of-alice'))).text).toBe('{"object":"list","data":[]}');
    const bob = await Promise.all([1, 2].map(() => gateway.post(CHAT, ask, as('key-of-bob-1'))));
    expect(bob.map(({ status }) => status).sort()).toEqual([200, 429]);
    expect(bob.find(({ status }) => status === 429)!.headers.get('retry-after')).toBe('1');
    expect(await gateway.post(CHAT, ask)).toMatchObject({ status: 200 });
  });
});

describe('a web page', () => {
  const preflight = {
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-type',
  };
  const asked = async (gateway: ServedGateway, origin: string) => {
    const response = await fetch(`${gateway.url}${CHAT}`, { method: 'OPTIONS', headers: { origin, ...preflight } });
    return [response.status, response.headers.get('access-control-allow-origin')];
  };

  it('of an allowed host may ask and read', async () => {
    const gateway = await serving(['fine'], { allowedHosts: ['app.example'] });
    expect(await asked(gateway, 'https://app.example')).toEqual([204, 'https://app.example']);
    const { status, headers } = await gateway.post(CHAT, ask, { origin: 'https://app.example' });
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, 'https://app.example']);
    const refused = await gateway.post(CHAT, { messages: [] }, { origin: 'https://app.example' });
    expect(refused.headers.get('access-control-allow-origin')).toBe('https://app.example');
  });

  it('of any other host may not', async () => {
    const gateway = await serving(['fine']);
    expect(await asked(gateway, 'https://evil.example')).toEqual([403, null]);
  });
});

describe('time', () => {
  it('an answer that takes too long is a 504, and its sample is cancelled', async () => {
    const gateway = await serving(['late'], { requestTimeoutMs: 50 }, { delayMs: 60_000 });
    expect(await gateway.post(CHAT, ask)).toMatchObject({ status: 504 });
    await expect.poll(gateway.cancelled).toBe(1);
  });

  it('a quiet stream says that it is alive, and clients skip it', async () => {
    const gateway = await serving(['late'], { heartbeatMs: 20 }, { delayMs: 200 });
    const { text } = await gateway.post(CHAT, { ...ask, stream: true });
    expect(text).toMatch(/^: keep-alive\n\n/);
    const openai = new OpenAI({ baseURL: gateway.baseURL, apiKey: gateway.apiKey });
    const final = await openai.chat.completions.stream({ model, ...ask }).finalContent();
    expect(final).toBe('late');
  });

  it('a caller that does not read is cut off', async () => {
    // More than the buffers of a socket hold, on both sides.
    const gateway = await serving(['x'.repeat(8_000_000)], { writeTimeoutMs: 100 }, {});
    const body = JSON.stringify({ ...ask, max_tokens: 16_384 });
    const socket = await opened(gateway.port);
    socket.write(
      `POST ${CHAT} HTTP/1.1\r\nHost: localhost\r\nx-api-key: ${gateway.apiKey}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    const active = async () => {
      const { text } = await get(gateway, '/metrics', { 'x-api-key': gateway.apiKey });
      return /requests_active (\d+)/.exec(text)?.[1];
    };
    await expect.poll(() => gateway.asked.length).toBe(1);
    await expect.poll(active, { timeout: 10_000 }).toBe('0');
    socket.destroy();
  });

  it('closing lets what is in flight end', async () => {
    const gateway = await serving(['late'], {}, { delayMs: 200 });
    const answer = gateway.post(CHAT, ask);
    await expect.poll(() => gateway.asked.length).toBe(1);
    const closing = gateway.close({ drainMs: 60_000 });
    expect(await answer).toMatchObject({ status: 200 });
    await closing;
    await expect(get(gateway, '/healthz')).rejects.toThrow();
  });
});

/** A connection that reads nothing. */
const opened = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket.pause()));
    socket.once('error', reject);
  });

it('a sampler that cannot be opened does not stay closed', async () => {
  const { sampler } = scripted(['fine']);
  let tries = 0;
  const getRenderer: typeof sampler.getRenderer = (...given) => {
    if (tries++ === 0) throw new Error('not yet');
    return sampler.getRenderer(...given);
  };
  const { serveSampler } = await import('../../../src/serve/index.js');
  const gateway = await serveSampler({ ...sampler, getRenderer });
  const openai = new OpenAI({ baseURL: gateway.baseURL, apiKey: gateway.apiKey, maxRetries: 0 });
  await expect(openai.chat.completions.create({ model, ...ask })).rejects.toMatchObject({ status: 500 });
  expect((await openai.chat.completions.create({ model, ...ask })).choices[0]!.message.content).toBe('fine');
  await gateway.close();
});
