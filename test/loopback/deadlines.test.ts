import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { firstValueFrom } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { resolveBaseUrl } from '../../src/transport/baseUrl.js';
import type { TransportFailure, TransportRequest, TransportResponse } from '../../src/transport/Transport.js';
import { socketTransport, type SocketTransport } from '../../src/transport/socketTransport.js';

let server: Server;
let sockets: SocketTransport;
let open: Set<Socket>;

/** A server that does with each connection what it is told, below HTTP. */
async function serve(behave: (socket: Socket) => void): Promise<void> {
  open = new Set();
  server = createServer((socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => {});
    behave(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseUrl = resolveBaseUrl(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, undefined);
  sockets = socketTransport({ baseUrl, environment: {} });
}
afterEach(async () => {
  await sockets.destroy();
  for (const socket of open) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

const ask = (request: Partial<TransportRequest>): Promise<TransportResponse> =>
  firstValueFrom(
    sockets.transport({
      method: 'POST',
      path: '/x',
      lane: 'training',
      headers: {},
      body: '{}',
      timeoutMs: 300,
      ...request,
    }),
  );
const failing = (request: Partial<TransportRequest>): Promise<TransportFailure> =>
  ask(request).then(
    () => Promise.reject(new Error('was answered')),
    (error: unknown) => error as TransportFailure,
  );
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
const CHUNKED = `${HEAD}transfer-encoding: chunked\r\n\r\n`;
const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`;

/** Writes for as long as somebody reads. */
function pour(socket: Socket, piece: Buffer): void {
  while (!socket.destroyed && socket.write(piece));
  socket.once('drain', () => pour(socket, piece));
}

describe('an upload', () => {
  it('that takes longer than timeoutMs and moves all the time was a headers timeout', async () => {
    const body = new Uint8Array(16 * 1024 * 1024);
    await serve((socket) => {
      let seen = 0;
      socket.on('data', (data) => {
        seen += data.length;
        socket.pause();
        setTimeout(() => socket.resume(), data.length / 8192);
        if (seen > body.length) socket.write(`${HEAD}content-length: 2\r\n\r\n{}`);
      });
    });
    const startedMs = performance.now();
    expect((await ask({ body, timeoutMs: 800 })).status).toBe(200);
    expect(performance.now() - startedMs).toBeGreaterThan(800);
  });

  it('that does not move is late', async () => {
    await serve((socket) => socket.pause());
    expect(await failing({ body: new Uint8Array(48 * 1024 * 1024) })).toMatchObject({
      kind: 'timeout',
      message: 'the request could not be sent on for 0.3 s',
    });
  });

  it('arrives whole, in pieces', async () => {
    const body = Uint8Array.from({ length: 3_000_001 }, (_, index) => index % 251);
    const seen: Buffer[] = [];
    await serve((socket) => {
      socket.on('data', (data) => {
        seen.push(data);
        const all = Buffer.concat(seen);
        const from = all.indexOf('\r\n\r\n') + 4;
        if (from > 3 && all.length - from === body.length) socket.write(`${HEAD}content-length: 2\r\n\r\n{}`);
      });
    });
    await ask({ body });
    const all = Buffer.concat(seen);
    expect(all.subarray(all.indexOf('\r\n\r\n') + 4).equals(body)).toBe(true);
    expect(all.toString('latin1', 0, 400)).toMatch(/content-length: 3000001\r\n/i);
  });
});

describe('an answer', () => {
  it('that trickles was waited for without an end', async () => {
    await serve((socket) => {
      socket.write(CHUNKED);
      const drip = setInterval(() => socket.write(chunk(1)), 20);
      socket.on('close', () => clearInterval(drip));
    });
    expect(await failing({})).toMatchObject({ kind: 'timeout', message: 'the answer was not complete after 0.3 s' });
  });

  it('whose headers trickle was waited for without an end', async () => {
    await serve((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      const drip = setInterval(() => socket.write('x: y\r\n'), 20);
      socket.on('close', () => clearInterval(drip));
    });
    expect(await failing({})).toMatchObject({ kind: 'timeout', message: 'no answer within 0.3 s' });
  });

  it('that is large and comes steadily has the time it needs', async () => {
    await serve((socket) => {
      socket.write(`${HEAD}content-length: 2000000\r\n\r\n`);
      let sent = 0;
      const flow = setInterval(() => {
        if (sent === 2_000_000) return clearInterval(flow);
        sent += 100_000;
        socket.write(Buffer.alloc(100_000));
      }, 40);
    });
    const startedMs = performance.now();
    expect((await ask({})).body).toHaveLength(2_000_000);
    expect(performance.now() - startedMs).toBeGreaterThan(600);
  });

  it('without an end took all memory: it is cut at the most of its kind', async () => {
    let written = 0;
    await serve((socket) => {
      socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\n`);
      pour(socket, Buffer.from(chunk(65_536)));
      socket.on('close', () => (written = socket.bytesWritten));
    });
    expect(await failing({ lane: 'telemetry', timeoutMs: 60_000 })).toMatchObject({
      kind: 'answer',
      message: 'the answer is larger than 1 MiB',
    });
    while (open.size > 0) await pause(5);
    expect(written).toBeLessThan(32 * 1024 * 1024);
  });

  it('that says it is too large is not read at all', async () => {
    await serve((socket) => socket.write(`${HEAD}content-length: 99999999999\r\n\r\n`));
    expect(await failing({ lane: 'polls', timeoutMs: 60_000 })).toMatchObject({
      kind: 'answer',
      message: 'the answer is larger than 512 MiB',
    });
  });

  it('that refuses without an end is a refusal, with what it said first', async () => {
    await serve((socket) => {
      socket.write('HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n');
      pour(socket, Buffer.from(chunk(65_536)));
    });
    const { status, body } = await ask({ timeoutMs: 60_000 });
    expect(status).toBe(503);
    expect(body.length).toBeGreaterThan(1024 * 1024);
    expect(body.length).toBeLessThan(2 * 1024 * 1024);
    while (open.size > 0) await pause(5);
  });
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('a proxy', () => {
  it.each(['http', 'https'])(
    'that accepts connections and says nothing was waited for without a word: %s',
    async (scheme) => {
      await serve(() => {});
      const proxy = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      sockets = socketTransport({
        baseUrl: resolveBaseUrl(`${scheme}://127.0.0.1:9`, undefined),
        environment: { HTTP_PROXY: proxy, HTTPS_PROXY: proxy },
        connectTimeoutMs: 200,
      });
      await expect(ask({})).rejects.toMatchObject({ kind: 'timeout' });
    },
  );
});
