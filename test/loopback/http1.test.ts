import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { firstValueFrom } from 'rxjs';
import { MockAgent } from 'undici';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceClient } from 'tinker-rx';
import { resolveBaseUrl } from '../../src/transport/baseUrl.js';
import type { TransportFailure, TransportRequest, TransportResponse } from '../../src/transport/Transport.js';
import { socketTransport, type SocketTransport } from '../../src/transport/socketTransport.js';

/** What the server does with the text of a request that has arrived. */
type Reply = (socket: Socket, request: string) => void;

const NEXT_REQUEST = /^(?:POST|GET|PUT|DELETE) [^]*?\r\n\r\n/;
let server: Server;
let sockets: Socket[];
let requests: string[];
let reply: Reply;
let origin: string;
let transport: SocketTransport;

beforeEach(async () => {
  sockets = [];
  requests = [];
  server = createServer((socket) => {
    sockets.push(socket);
    let text = '';
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
      const head = NEXT_REQUEST.exec(text)?.[0];
      if (head === undefined) return;
      const length = head.length + Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0);
      if (text.length < length) return;
      const request = text.slice(0, length);
      text = text.slice(length);
      requests.push(request);
      reply(socket, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  transport = open();
});
afterEach(async () => {
  await transport.destroy();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

const open = (options: object = {}): SocketTransport =>
  socketTransport({ baseUrl: resolveBaseUrl(`${origin}/base`, undefined), environment: {}, ...options });
const request = (more: Partial<TransportRequest> = {}): TransportRequest => ({
  method: 'POST',
  path: '/a',
  lane: 'rest',
  headers: {},
  timeoutMs: 5000,
  ...more,
});
const ask = (more: Partial<TransportRequest> = {}): Promise<TransportResponse> =>
  firstValueFrom(transport.transport(request(more)));
const says =
  (text: string, close = false): Reply =>
  (socket) => {
    socket.write(Buffer.from(text, 'latin1'));
    if (close) socket.end();
  };
const HI = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi';
const closed = async (socket: Socket): Promise<void> => {
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
};

describe('a request', () => {
  it.each([
    ['text of one byte per character', 'plain'],
    ['text of several bytes per character', 'naïve 日本語 🦊'],
    ['bytes', Uint8Array.from({ length: 256 }, (_, byte) => byte)],
    ['a large text', 'ä'.repeat(400_000)],
    ['large bytes', new Uint8Array(1_000_000).fill(7)],
  ])('carries %s as it is', async (_, body) => {
    reply = says(HI);
    await ask({ body });
    const bytes = Buffer.from(body as string);
    const sent = Buffer.from(requests[0]!, 'latin1');
    expect(sent.subarray(-bytes.length).equals(bytes)).toBe(true);
    expect(requests[0]).toContain(`content-length: ${bytes.length}\r\n`);
  });

  it.each([
    ['a header of two lines', { headers: { x: 'a\r\ny: b' } }],
    ['a name with a space', { headers: { 'x y': 'a' } }],
    ['an encoding of its own', { headers: { 'transfer-encoding': 'chunked' } }],
    ['a path of two lines', { path: '/a\r\nx: y' }],
  ])('with %s is not sent', async (_, more) => {
    await expect(ask(more)).rejects.toMatchObject({ kind: 'request' });
    expect(requests).toHaveLength(0);
    reply = says(HI);
    expect((await ask()).status).toBe(200);
  });

  it('is a plain object: a transport around it may copy and change it', async () => {
    reply = says('HTTP/1.1 404 No\r\ncontent-length: 2\r\n\r\n{}');
    const service = new ServiceClient({
      baseUrl: origin,
      apiKey: 'tml-x',
      logLevel: 'silent',
      telemetry: false,
      transport: (sent) => transport.transport({ ...sent, headers: { ...sent.headers, 'x-mine': '1' } }),
    });
    await expect(service.createSamplingClient({ baseModel: 'm' })).rejects.toMatchObject({ code: 'not_found' });
    const session = requests.find((text) => text.includes('/create_session'))!;
    expect(session).toContain('x-mine: 1\r\n');
    expect(session).toMatch(/\{"tags":\[\],.*"type":"create_session"\}$/);
    await service.destroy();
  });

  it('goes through a dispatcher of undici where the caller gives one, such as a MockAgent', async () => {
    const agent = new MockAgent();
    agent.disableNetConnect();
    const answer = (path: string, method: string, body: object) =>
      agent
        .get('http://mocked.test')
        .intercept({ path: `/api/v1/${path}`, method })
        .reply(200, body, { headers: { 'content-type': 'application/json' } });
    answer('client/config', 'POST', {});
    answer('get_server_capabilities', 'GET', { supported_models: [{ model_name: 'mocked' }] });
    const service = new ServiceClient({ baseUrl: 'http://mocked.test', apiKey: 'any-key', dispatcher: agent });
    const { supportedModels } = await service.getServerCapabilities();
    expect(supportedModels.map(({ modelName }) => modelName)).toEqual(['mocked']);
    await service.close();
    await agent.close();
  });
});

describe('a connection', () => {
  it('is used again, for as long as the server keeps it', async () => {
    reply = says('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nkeep-alive: timeout=60\r\n\r\nhi');
    for (let count = 0; count < 8; count++) await ask();
    // undici rests a connection for a turn of the event loop, so that two take turns.
    expect(sockets.length).toBeLessThanOrEqual(2);
    expect(sockets[0]!.closed).toBe(false);
  });

  it.each([
    ['the server says that it closes it', says('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi')],
    ['the server closes it', says(HI, true)],
    ['it carried a 500', says('HTTP/1.1 500 No\r\ncontent-length: 2\r\n\r\nno')],
    ['it carried a 503 without a body', says('HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n')],
    ['a proxy refused with an empty 400', says('HTTP/1.1 400 No\r\ncontent-length: 0\r\n\r\n')],
  ])('is not used again where %s', async (_, first) => {
    reply = first;
    await ask();
    await closed(sockets[0]!);
    reply = says(HI);
    expect((await ask()).status).toBe(200);
    expect(sockets).toHaveLength(2);
  });

  it('whose request was cancelled is closed, and its answer never read', async () => {
    reply = () => undefined;
    const subscription = transport.transport(request()).subscribe();
    while (requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    subscription.unsubscribe();
    await closed(sockets[0]!);
    expect(requests).toHaveLength(1);
  });

  it.each(['at once', 'with a reset'])(
    'that the server closes %s before any byte of an answer is a reset',
    async (how) => {
      reply = (socket) => (how === 'at once' ? socket.destroy() : socket.resetAndDestroy());
      await expect(ask()).rejects.toMatchObject({ kind: 'reset' });
    },
  );

  it('that the server closes in the middle of an answer is a failure of the connection', async () => {
    reply = says('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi', true);
    await expect(ask()).rejects.toMatchObject({ kind: 'connection' });
  });

  it('to a port where nothing listens is a failure of the connection', async () => {
    await transport.destroy();
    origin = 'http://127.0.0.1:1';
    transport = open();
    const failure = await ask().catch((error: unknown) => error as TransportFailure);
    expect(failure).toMatchObject({ kind: 'connection', message: 'connect ECONNREFUSED 127.0.0.1:1' });
  });

  it.each([
    ['session: 0', { session: 0 }, 'connections.session must be an integer >= 1, got 0'],
    ['polls: -1', { polls: -1 }, 'connections.polls must be an integer >= 1, got -1'],
    ['rest: NaN', { rest: NaN }, 'connections.rest must be an integer >= 1, got NaN'],
    ['a misspelt lane', { poll: 3 }, 'connections.poll is not a lane: expected one of session, training, sampling'],
  ])('is limited to a number that makes sense: not %s', (_, connections, message) => {
    const make = () => new ServiceClient({ baseUrl: origin, apiKey: 'tml-x', connections: connections as object });
    expect(make).toThrow(expect.objectContaining({ code: 'invalid_input' }) as Error);
    expect(make).toThrow(message);
  });
});

it('answers that arrive byte by byte, on many connections at once, are not mixed up', async () => {
  reply = (socket, text) => {
    const name = /POST \/base\/(\d+) /.exec(text)![1]!;
    const body = name.repeat(40);
    const bytes = Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\nx: ${name}\r\n\r\n${body}`);
    let at = 0;
    const next = (): void => {
      const step = 1 + ((at * 7 + Number(name)) % 9);
      socket.write(bytes.subarray(at, at + step));
      at += step;
      if (at < bytes.length) setImmediate(next);
    };
    next();
  };
  const names = Array.from({ length: 60 }, (_, index) => String(index));
  const answers = await Promise.all(names.map((name) => ask({ path: `/${name}`, lane: 'polls' })));
  expect(answers.map(({ body, headers }) => [Buffer.from(body).toString(), headers['x']])).toStrictEqual(
    names.map((name) => [name.repeat(40), name]),
  );
});

it('an answer of many megabytes arrives whole', async () => {
  const body = Buffer.alloc(20_000_000, 'tinker ');
  reply = (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`);
    socket.write(body);
  };
  const answer = await ask({ lane: 'polls' });
  expect(Buffer.from(answer.body).equals(body)).toBe(true);
});

it('thousands that wait for one connection and cannot be sent fail without overflowing', async () => {
  await transport.destroy();
  transport = open({ connections: { rest: 1 } });
  reply = (socket) => void setTimeout(() => socket.write(HI), 20);
  const first = ask();
  const unsendable = Array.from({ length: 20_000 }, () =>
    ask({ headers: { x: 'not\nsent' } }).catch((error: TransportFailure) => error.kind),
  );
  const last = ask();
  expect((await first).status).toBe(200);
  expect(new Set(await Promise.all(unsendable))).toStrictEqual(new Set(['request']));
  expect((await last).status).toBe(200);
});
