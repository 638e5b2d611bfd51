import { spawn } from 'node:child_process';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { firstValueFrom, type Observable } from 'rxjs';
import { Client } from 'undici';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
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
const ask = (request: Partial<TransportRequest> = {}): Promise<TransportResponse> =>
  firstValueFrom(
    transport.transport({ method: 'POST', path: '/a', lane: 'rest', headers: {}, timeoutMs: 5000, ...request }),
  );
const says =
  (text: string, close = false): Reply =>
  (socket) => {
    socket.write(Buffer.from(text, 'latin1'));
    if (close) socket.end();
  };
const DEAF = `const server = require('node:net').createServer().listen(0, '127.0.0.1', 1, () => {
  require('node:fs').writeSync(1, String(server.address().port));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
})`;
const RESETTING = `const open = new Set();
const server = require('node:net').createServer((socket) => {
  open.add(socket.on('error', () => undefined).on('close', () => open.delete(socket)));
  const answer = () => socket.write('HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\nhi');
  socket.on('data', (request) => {
    if (request.includes('/wait')) return setTimeout(answer, 30);
    if (!request.includes('/reset-others')) return answer();
    setTimeout(() => {
      for (const other of open) if (other !== socket) other.resetAndDestroy();
      setTimeout(answer, 5);
    }, 50);
  });
}).listen(0, '127.0.0.1', () => process.stdout.write(String(server.address().port)));`;
const HI = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi';
const closed = async (socket: Socket): Promise<void> => {
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
};

describe('a request', () => {
  it('is written with its headers, its length and its body', async () => {
    reply = says(HI);
    await ask({ headers: { 'x-api-key': 'tml-1', accept: 'a/b' }, body: '{"a":1}' });
    await ask({ method: 'GET', path: '/b?c=d' });
    await ask({ method: 'DELETE' });
    const host = origin.slice('http://'.length);
    expect(requests).toStrictEqual([
      `POST /base/a HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\nx-api-key: tml-1\r\naccept: a/b\r\ncontent-length: 7\r\n\r\n{"a":1}`,
      `GET /base/b?c=d HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n\r\n`,
      `DELETE /base/a HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n`,
    ]);
    expect(sockets).toHaveLength(1);
  });

  it('may name its host, and ask for its connection to be closed', async () => {
    reply = says(HI);
    await ask({ headers: { host: 'a.test', connection: 'close' } });
    expect(requests).toStrictEqual([
      'POST /base/a HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\ncontent-length: 0\r\n\r\n',
    ]);
  });

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
    ['a header of another alphabet', { headers: { x: '日' } }],
    ['a name with a space', { headers: { 'x y': 'a' } }],
    ['a length of its own', { headers: { 'content-length': '3' } }],
    ['an encoding of its own', { headers: { 'transfer-encoding': 'chunked' } }],
    ['a connection of another protocol', { headers: { connection: 'upgrade' } }],
    ['a path of two lines', { path: '/a\r\nx: y' }],
    ['a path with a space', { path: '/a HTTP/1.1' }],
  ])('with %s is not sent', async (_, request) => {
    await expect(ask(request)).rejects.toMatchObject({ kind: 'request' });
    expect(sockets).toHaveLength(0);
    reply = says(HI);
    expect((await ask()).status).toBe(200);
  });
});

describe('an answer is read as undici reads it', () => {
  const ok = (head: string, body: string): string => `HTTP/1.1 200 OK\r\n${head}\r\n\r\n${body}`;
  const shared: readonly (readonly [string, string])[] = [
    ['one with a length', HI],
    ['one without a reason', 'HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nhi'],
    ['one after an early hint', `HTTP/1.1 103 Early\r\nlink: x\r\n\r\n${HI}`],
    ['one without content', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['one in chunks', ok('transfer-encoding: chunked', '1;a\r\nh\r\n1\r\ni\r\n0\r\nx: y\r\n\r\n')],
    ['one that ends with the connection', 'HTTP/1.1 200 OK\r\n\r\nhello'],
    ['one of HTTP/1.0', 'HTTP/1.0 200 OK\r\n\r\nhello'],
    ['one of an unknown status', 'HTTP/1.1 600 What\r\ncontent-length: 2\r\n\r\nhi'],
    ['one with bytes after it', `${HI}more`],
    ['a header without a value', ok('x:\r\ncontent-length: 2', 'hi')],
    ['a header of one byte per character', ok('x: caf\xe9\r\ncontent-length: 2', 'hi')],
    ['none', ''],
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['one that is cut short', ok('content-length: 9', 'hi')],
    ['a chunk that is cut short', ok('transfer-encoding: chunked', '9\r\nhi')],
    ['a chunk without a size', ok('transfer-encoding: chunked', 'z\r\nhi\r\n0\r\n\r\n')],
    ['a chunk longer than it says', ok('transfer-encoding: chunked', '2\r\nhello\r\n0\r\n\r\n')],
    ['a length and chunks', ok('transfer-encoding: chunked\r\ncontent-length: 2', '2\r\nhi\r\n0\r\n\r\n')],
    ['two lengths', ok('content-length: 2\r\ncontent-length: 3', 'hi')],
    ['a length with a sign', ok('content-length: +2', 'hi')],
    ['a length that is none', ok('content-length:', 'hi')],
    ['a folded header', ok('x: a\r\n b\r\ncontent-length: 2', 'hi')],
    ['a space before a colon', ok('x : a\r\ncontent-length: 2', 'hi')],
    ['a header without a colon', ok('x\r\ncontent-length: 2', 'hi')],
    ['a NUL in a header', ok('x: a\0b\r\ncontent-length: 2', 'hi')],
    ['lines that end in a line feed only', 'HTTP/1.1 200 OK\ncontent-length: 2\n\nhi'],
    ['a carriage return in a header', ok('x: a\rb\r\ncontent-length: 2', 'hi')],
    ['headers without an end', ok(`x: ${'y'.repeat(20_000)}`, '')],
  ];
  const FAILED = 'failed';

  it.each(shared)('%s', async (_, text) => {
    reply = says(text, true);
    const client = new Client(origin);
    const theirs = await client
      .request({ method: 'POST', path: '/', body: '{}' })
      .then(async ({ statusCode, headers, body }) => ({ status: statusCode, headers, body: await body.text() }))
      .catch(() => FAILED);
    const ours = await ask({ body: '{}' })
      .then(({ status, headers, body }) => ({ status, headers, body: Buffer.from(body).toString() }))
      .catch(() => FAILED);
    expect(ours).toStrictEqual(theirs);
    await client.destroy();
  });
});

describe('a connection', () => {
  it('is used again, for as long as the server keeps it', async () => {
    reply = says('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nkeep-alive: timeout=60\r\n\r\nhi');
    for (let request = 0; request < 5; request++) await ask();
    expect(sockets).toHaveLength(1);
    expect(sockets[0]!.closed).toBe(false);
  });

  it.each([
    ['the server says that it closes it', says('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi')],
    ['the server closes it', says(HI, true)],
    [
      'the server would close it at once',
      says('HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 2\r\n\r\nhi'),
    ],
    ['the server sends more than its answer', says(`${HI}HTTP/1.1 200 OK\r\n`)],
  ])('is not used again where %s', async (_, first) => {
    reply = first;
    expect((await ask()).status).toBe(200);
    await closed(sockets[0]!);
    reply = says(HI);
    expect((await ask()).status).toBe(200);
    expect(sockets).toHaveLength(2);
  });

  it('on which a server speaks without being asked is given up', async () => {
    reply = says(HI);
    await ask();
    sockets[0]!.write('HTTP/1.1 408 Timeout\r\ncontent-length: 0\r\n\r\n');
    await closed(sockets[0]!);
    expect((await ask()).body.toString()).toBe('hi');
  });

  it('whose request was cancelled is closed, and its answer never read', async () => {
    reply = () => undefined;
    const cancelled = transport.transport({ method: 'POST', path: '/a', lane: 'rest', headers: {}, timeoutMs: 5000 });
    const subscription = cancelled.subscribe();
    while (requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    subscription.unsubscribe();
    await closed(sockets[0]!);
    expect(requests).toHaveLength(1);
  });

  it('is closed where the server answers before it has read all of a large request', async () => {
    server.prependListener('connection', (socket: Socket) =>
      socket.once('data', () => socket.pause().write('HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n')),
    );
    reply = () => undefined;
    expect((await ask({ body: new Uint8Array(30_000_000) })).status).toBe(413);
    sockets[0]!.resume();
    await closed(sockets[0]!);
  });

  it('that cannot be opened in time is a timeout', async () => {
    // A program that listens and never accepts. Once its queue is full, the system leaves further connections waiting.
    const deaf = spawn(process.execPath, ['-e', DEAF], { stdio: ['ignore', 'pipe', 'inherit'] });
    const port = Number(await new Promise((resolve) => deaf.stdout.once('data', resolve)));
    const queued = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => undefined));
    await new Promise((resolve) => setTimeout(resolve, 50));
    await transport.destroy();
    origin = `http://127.0.0.1:${port}`;
    transport = open({ connectTimeoutMs: 100 });
    await expect(ask()).rejects.toMatchObject({ kind: 'timeout', message: 'no connection within 0.1 s' });
    for (const socket of queued) socket.destroy();
    deaf.kill('SIGKILL');
  });

  it('to a port where nothing listens is a failure of the connection', async () => {
    await transport.destroy();
    origin = 'http://127.0.0.1:1';
    transport = open();
    const failure = await ask().catch((error: unknown) => error as TransportFailure);
    expect(failure).toMatchObject({ kind: 'connection', message: 'connect ECONNREFUSED 127.0.0.1:1' });
  });
});

it('answers that arrive byte by byte, on many connections at once, are not mixed up', async () => {
  reply = (socket, request) => {
    const name = /POST \/base\/(\d+) /.exec(request)![1]!;
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

describe('requests that share a connection', () => {
  beforeEach(async () => {
    await transport.destroy();
    transport = open({ connections: { rest: 1 }, mostBytes: { rest: 4 } });
  });
  const send = (path: string, headers: Record<string, string> = {}): Observable<TransportResponse> =>
    transport.transport({ method: 'POST', path, lane: 'rest', headers, timeoutMs: 1000 });
  const later = (text: string): Reply => {
    const say = says(text);
    return (socket, request) => setTimeout(say, 20, socket, request);
  };

  it('were cut off by the end of the one before: its cancelling closes nothing once it is answered', async () => {
    reply = later(HI);
    const first = send('/first').subscribe();
    send('/second', { x: 'not\nsent' }).subscribe({ error: () => first.unsubscribe() });
    expect((await firstValueFrom(send('/third'))).status).toBe(200);
  });

  it('were cut off by the end of the one before: nor where it is cancelled by what was told of room', async () => {
    reply = later(HI);
    const first = send('/first').subscribe();
    const second = new Promise<TransportResponse>((resolve, reject) => {
      const onRoom = (): void => {
        send('/second').subscribe({ next: resolve, error: reject });
        first.unsubscribe();
      };
      expect(transport.transport.hasRoom!('rest', onRoom)).toBe(false);
    });
    expect((await second).status).toBe(200);
  });

  it('failed for the answer of the one before, which was given up and then malformed', async () => {
    reply = later('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\n12345678\r\nzzz\r\n');
    const first = firstValueFrom(send('/first'));
    const second = firstValueFrom(send('/second'));
    await expect(first).rejects.toMatchObject({ kind: 'answer' });
    reply = says(HI);
    expect((await second).status).toBe(200);
  });

  it('lost it to one whose text cannot be written', async () => {
    reply = says(HI);
    const unwritable = (): Promise<TransportResponse> =>
      firstValueFrom(
        transport.transport({
          method: 'POST',
          path: '/x',
          lane: 'rest',
          headers: {},
          timeoutMs: 1000,
          get body(): string {
            throw new RangeError('Invalid string length');
          },
        }),
      );
    const failure = { kind: 'request', message: 'the body cannot be written: Invalid string length' };
    await expect(unwritable()).rejects.toMatchObject(failure);
    expect((await firstValueFrom(send('/a'))).status).toBe(200);
    await expect(unwritable()).rejects.toMatchObject(failure);
    const before = firstValueFrom(send('/b'));
    const waiting = unwritable();
    const after = firstValueFrom(send('/c'));
    await expect(waiting).rejects.toMatchObject(failure);
    expect([(await before).status, (await after).status]).toStrictEqual([200, 200]);
  });

  it('overflowed the stack where thousands that wait cannot be sent', async () => {
    reply = later(HI);
    const first = firstValueFrom(send('/first'));
    const unsendable = Array.from({ length: 20_000 }, () =>
      firstValueFrom(send('/x', { x: 'not\nsent' })).catch((error: TransportFailure) => error.kind),
    );
    const last = firstValueFrom(send('/last'));
    expect((await first).status).toBe(200);
    expect(new Set(await Promise.all(unsendable))).toStrictEqual(new Set(['request']));
    expect((await last).status).toBe(200);
  });
});

it('a request was written to a connection that had just been reset', async () => {
  // In a process of its own, so that a reset and an answer arrive in one turn of this one.
  const resetting = spawn(process.execPath, ['-e', RESETTING], { stdio: ['ignore', 'pipe', 'inherit'] });
  const port = Number(await new Promise((resolve) => resetting.stdout.once('data', resolve)));
  await transport.destroy();
  origin = `http://127.0.0.1:${port}`;
  transport = open({ connections: { rest: 2 } });
  await Promise.all([ask({ path: '/wait' }), ask({ path: '/wait' })]);
  const next = new Promise<readonly TransportResponse[]>((resolve, reject) => {
    const request = { method: 'POST', path: '/reset-others', lane: 'rest', headers: {}, timeoutMs: 5000 } as const;
    transport.transport(request).subscribe({ next: () => resolve(Promise.all([ask(), ask()])), error: reject });
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  // Both arrive while this process does something else.
  for (const until = performance.now() + 150; performance.now() < until;);
  expect((await next).map(({ status }) => status)).toStrictEqual([200, 200]);
  resetting.kill('SIGKILL');
});
