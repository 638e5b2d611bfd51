/** Upstreams that break, refuse, redirect or tell secrets, and what callers and the recording get of it. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { lastValueFrom, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { recordCalls, type ServedGateway, serveUpstream, type UpstreamOptions } from '../../../src/serve/index.js';
import { fromRecorded, type RecordedCall } from '../../../src/sources/index.js';
import { user } from './serving.js';

const KEY = 'key-of-the-upstream';
let folder: string;
let file: string;
const servers: Server[] = [];
const gateways: ServedGateway[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-broken-'));
  file = join(folder, 'calls.jsonl');
});
afterEach(async () => {
  await Promise.all(gateways.splice(0).map((gateway) => gateway.close()));
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  }
  rmSync(folder, { recursive: true });
});

/** A service that answers as it is told, and counts how often it is asked. */
async function answering(answer: (response: ServerResponse, request: IncomingMessage) => void) {
  const seen: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    seen.push(request);
    request.resume().on('end', () => answer(response, request));
  });
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

async function passing(upstream: string, options: Partial<UpstreamOptions> = {}) {
  const gateway = await serveUpstream({ upstream, upstreamKey: KEY, record: recordCalls(file), ...options });
  gateways.push(gateway);
  const { apiKey } = gateway;
  return {
    gateway,
    openai: new OpenAI({ baseURL: gateway.baseURL, apiKey, maxRetries: 0 }),
    anthropic: new Anthropic({ baseURL: gateway.url, apiKey, maxRetries: 0 }),
    post: (path: string, body: object, more: RequestInit = {}) =>
      fetch(`${gateway.url}${path}`, {
        ...{ method: 'POST', headers: { authorization: `Bearer ${apiKey}` }, body: JSON.stringify(body) },
        ...more,
      }),
  };
}

const CHAT = '/v1/chat/completions';
const asked = { model: 'm', messages: user('Hi') };
const recorded = (): Promise<RecordedCall[]> => lastValueFrom(fromRecorded(file, { as: 'calls' }).pipe(toArray()));
const learned = () => lastValueFrom(fromRecorded(file).pipe(toArray()));

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const event = (type: string, rest: object = {}) => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
/** What a stream of each API begins with. Hand-written from the documentation. */
const BEGINNINGS = {
  '/v1/chat/completions': [chunk({ role: 'assistant', content: 'Half' }), chunk({ content: ' an answer' })],
  '/v1/completions': ['data: {"id":"cmpl-1","choices":[{"index":0,"text":"Half","finish_reason":null}]}\n\n'],
  '/v1/messages': [
    event('message_start', { message: { id: 'msg_1', role: 'assistant', content: [], usage: {} } }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Half' } }),
  ],
  '/v1/responses': [
    event('response.created', { response: { id: 'resp_1', status: 'in_progress', output: [] } }),
    event('response.output_text.delta', { delta: 'Half' }),
  ],
} as const;
const PATHS = Object.keys(BEGINNINGS) as (keyof typeof BEGINNINGS)[];
const bodies = {
  '/v1/chat/completions': asked,
  '/v1/completions': { model: 'm', prompt: 'Hi' },
  '/v1/messages': { ...asked, max_tokens: 9 },
  '/v1/responses': { model: 'm', input: 'Hi' },
};

describe('a stream of the upstream that breaks off', () => {
  it.each(PATHS)('%s: fails for the caller, and is no conversation to train on', async (path) => {
    const { url } = await answering((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(BEGINNINGS[path].join(''), () => response.destroy());
    });
    const { post } = await passing(url);
    await expect(post(path, { ...bodies[path], stream: true }).then((reply) => reply.text())).rejects.toThrow();
    await vi.waitFor(async () => expect(await recorded()).toMatchObject([{ status: 502 }]));
    expect(await learned()).toStrictEqual([]);
  });

  it.each(PATHS)('%s: ended without its last event, it is no conversation to train on either', async (path) => {
    const { url } = await answering((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(BEGINNINGS[path].join(''));
    });
    const { post } = await passing(url);
    expect(await (await post(path, { ...bodies[path], stream: true })).text()).toContain('Half');
    expect(await recorded()).toMatchObject([{ status: 200, problem: 'the stream of the reply broke off' }]);
    expect(await learned()).toStrictEqual([]);
  });

  it('says what the upstream said where the stream ends with an error', async () => {
    const { url } = await answering((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`${chunk({ content: 'Half' })}data: {"error":{"message":"overloaded"}}\n\ndata: [DONE]\n\n`);
    });
    const { post } = await passing(url);
    await (await post(CHAT, { ...asked, stream: true })).text();
    expect(await recorded()).toMatchObject([{ problem: 'the upstream failed: overloaded' }]);
    expect(await learned()).toStrictEqual([]);
  });
});

describe('a caller that hangs up', () => {
  it('ends its call at the upstream, and is recorded without a reply', async () => {
    let closed = false;
    const { url } = await answering((response) => {
      response.on('close', () => (closed = true));
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(chunk({ content: 'Half' }));
    });
    const { post } = await passing(url);
    const abort = new AbortController();
    const reply = await post(CHAT, { ...asked, stream: true }, { signal: abort.signal });
    await reply.body!.getReader().read();
    abort.abort();
    await vi.waitFor(() => expect(closed).toBe(true));
    await vi.waitFor(async () => expect(await recorded()).toMatchObject([{ status: 499, messages: asked.messages }]));
    expect(await learned()).toStrictEqual([]);
  });

  it('before the upstream answered, too', async () => {
    const { url, seen } = await answering(() => undefined);
    const { post } = await passing(url);
    const abort = new AbortController();
    const reply = post(CHAT, asked, { signal: abort.signal });
    await vi.waitFor(() => expect(seen).toHaveLength(1));
    abort.abort();
    await expect(reply).rejects.toThrow();
    await vi.waitFor(async () => expect(await recorded()).toMatchObject([{ status: 499 }]));
  });
});

describe('refusals of the upstream', () => {
  it.each([429, 500, 503, 529])('%s is passed on as it is, once', async (status) => {
    const { url, seen } = await answering((response) => {
      response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '7' });
      response.end('{"error":{"message":"not now"}}');
    });
    const { openai } = await passing(url);
    const refused = await openai.chat.completions.create(asked).then(
      () => undefined,
      (error: unknown) => error as InstanceType<typeof OpenAI.APIError>,
    );
    expect(refused).toMatchObject({ status, error: { message: 'not now' } });
    expect(refused!.headers!.get('retry-after')).toBe('7');
    expect(seen).toHaveLength(1);
    expect(await recorded()).toMatchObject([{ status }]);
    expect(await learned()).toStrictEqual([]);
  });

  it('never tell callers the key of the upstream', async () => {
    const { url } = await answering((response, { headers }) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: `bad request with ${JSON.stringify(headers)}` } }));
    });
    const { post } = await passing(url);
    for (const path of PATHS) {
      const reply = await post(path, bodies[path]);
      const text = await reply.text();
      expect([reply.status, text]).toStrictEqual([400, expect.stringContaining('[redacted]')]);
      expect(text).not.toContain(KEY);
    }
    expect(readFileSync(file, 'utf8')).not.toContain(KEY);
  });

  it('a redirect is not followed, so that the key goes nowhere else', async () => {
    const elsewhere = await answering((response) => response.end('{}'));
    const { url } = await answering((response) => response.writeHead(307, { location: elsewhere.url }).end());
    const { anthropic } = await passing(url);
    await expect(anthropic.messages.create({ ...asked, max_tokens: 9 })).rejects.toMatchObject({
      status: 502,
      message: expect.stringContaining('the upstream redirects') as string,
    });
    expect(elsewhere.seen).toHaveLength(0);
  });
});

describe('large replies', () => {
  it('are passed on whole; what is too large to record says so', async () => {
    const text = 'x'.repeat(17 * 1024 * 1024);
    const { url } = await answering((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`${chunk({ content: 'Small' })}${chunk({ content: text }, 'stop')}data: [DONE]\n\n`);
    });
    const { post } = await passing(url);
    expect((await (await post(CHAT, { ...asked, stream: true })).text()).length).toBeGreaterThan(text.length);
    expect(await recorded()).toMatchObject([{ problem: 'the reply has more than 16777216 characters' }]);
    expect(await learned()).toStrictEqual([]);
  });

  it('requests over the limit are refused before the upstream is asked', async () => {
    const { url, seen } = await answering((response) => response.end('{}'));
    const { post } = await passing(url, { maxBodyBytes: 1000 });
    expect((await post(CHAT, { ...asked, messages: user('x'.repeat(2000)) })).status).toBe(413);
    expect(seen).toHaveLength(0);
  });
});

describe('the address of an upstream', () => {
  it.each([
    ['', CHAT, '/v1/chat/completions'],
    ['/v1/', CHAT, '/v1/chat/completions'],
    ['/v1beta/openai/', CHAT, '/v1beta/openai/chat/completions'],
    ['/openai/v1?api-version=preview', CHAT, '/openai/v1/chat/completions?api-version=preview'],
    ['/api/v1', '/v1/messages', '/api/v1/messages'],
    ['/anthropic', '/v1/messages', '/anthropic/v1/messages'],
  ] as const)('%s: %s is asked at %s', async (base, path, expected) => {
    const { url, seen } = await answering((response) => response.end('{}'));
    const { post } = await passing(`${url}${base}`);
    await post(path, asked);
    expect(seen.map((request) => request.url)).toStrictEqual([expected]);
  });

  it('with a password in it is refused, without telling it', async () => {
    const starting = passing('http://me:hunter22@127.0.0.1:1/v1');
    await expect(starting).rejects.toThrow('upstream must not have a user or password: give the key as upstreamKey');
    await expect(starting).rejects.not.toThrow('hunter22');
  });

  it('a key in its query is never recorded', async () => {
    const { url, seen } = await answering((response, { url: own }) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ choices: [{ message: { role: 'assistant', content: `you asked ${own}` } }] }));
    });
    const { post } = await passing(`${url}/v1?sig=abcdef123456`);
    await post(CHAT, asked);
    expect(seen[0]!.url).toContain('abcdef123456');
    expect(readFileSync(file, 'utf8')).not.toContain('abcdef123456');
  });
});
