/**
 * Requests over plain HTTP/1.1 to a server that answers in every way it can, cancelled and made again at any moment, also by what
 * hears of another's end. `npm run test:fuzz` goes on for longer.
 */
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { asyncScheduler, type Subscription } from 'rxjs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { resolveBaseUrl } from '../../src/transport/baseUrl.js';
import { socketTransport, type SocketTransport } from '../../src/transport/socketTransport.js';
import { withTimeout } from '../../src/transport/withTimeout.js';
import type { TransportFailure, TransportRequest, TransportResponse } from '../../src/transport/Transport.js';
import { Mutator } from './support/mutate.js';

const REQUESTS = process.env['TINKER_RX_SUITE'] === 'long' ? 10_000 : 200;
const CONNECTIONS = 4;
const MOST_BYTES = 300_000;

const ok = (head: string, body: string): string => `HTTP/1.1 200 OK\r\n${head}\r\n\r\n${body}`;
const plain = (name: string): string => ok(`content-length: ${name.length}`, name);
const chunks = (name: string): string =>
  ok('transfer-encoding: chunked', `${[...name].map((letter) => `1\r\n${letter}\r\n`).join('')}0\r\n\r\n`);

/** What the server does with a request of this name; `next` when the connection may carry another. */
const WAYS: Readonly<Record<string, (socket: Socket, name: string, next: () => void) => void>> = {
  whole: (socket, name, next) => (socket.write(plain(name)), next()),
  pieces: (socket, name, next) => dribble(socket, `HTTP/1.1 100 Continue\r\n\r\n${plain(name)}`, next),
  chunks: (socket, name, next) => dribble(socket, chunks(name), next),
  late: (socket, name, next) => void setTimeout(() => (socket.write(plain(name)), next()), 5),
  'said to be the last': (socket, name) =>
    void socket.end(ok(`connection: close\r\ncontent-length: ${name.length}`, name)),
  'the last': (socket, name) => void socket.end(plain(name)),
  'closed a moment later': (socket, name) => void (socket.write(plain(name)), setTimeout(() => socket.end(), 2)),
  'reset a moment later': (socket, name) =>
    void (socket.write(plain(name)), setTimeout(() => socket.resetAndDestroy(), 2)),
  'up to the end': (socket, name) => void socket.end(ok('x: y', name)),
  'with more after it': (socket, name, next) => (socket.write(`${plain(name)}${plain('bad')}`), next()),
  malformed: (socket) => void socket.write(ok('content-length: x', '')),
  'cut by a reset': (socket, name) =>
    void (socket.write(plain(name).slice(0, 20)), setTimeout(() => socket.resetAndDestroy(), 2)),
  'cut by the end': (socket, name) => void socket.end(plain(name).slice(0, -1)),
  'too large': (socket, _, next) => (
    socket.write(ok(`content-length: ${MOST_BYTES + 1}`, 'z'.repeat(MOST_BYTES + 1))),
    next()
  ),
  never: () => undefined,
};
const EARLY = 'before it has read all';

let chance: Mutator;
let server: Server;
let arrived: Map<string, number>;
let transport: SocketTransport;

function dribble(socket: Socket, text: string, done: () => void): void {
  let at = 0;
  const step = (): void => {
    if (socket.destroyed) return;
    const end = at + 1 + chance.below(40);
    socket.write(text.slice(at, end));
    at = end;
    if (at < text.length) setImmediate(step);
    else done();
  };
  step();
}

/** Reads requests one after the other, and answers each in the way that its path asks for. */
function serve(socket: Socket): void {
  let text = '';
  let isBusy = false;
  let early: string | undefined;
  const next = (): void => {
    const head = /^POST \/(\d+)\/(\S+) [^]*?\r\n\r\n/.exec(text);
    if (isBusy || head === null) return;
    const [{ length }, name, way] = [head[0], head[1]!, decodeURIComponent(head[2]!)];
    if (way === EARLY && early !== name) socket.write(plain(name));
    if (early !== name) arrived.set(name, (arrived.get(name) ?? 0) + 1);
    early = name;
    const whole = length + Number(/content-length: (\d+)/.exec(head[0])![1]);
    if (text.length < whole) return;
    text = text.slice(whole);
    if (way === EARLY) return next();
    isBusy = true;
    WAYS[way]!(socket, name, () => {
      isBusy = false;
      next();
    });
  };
  socket.on('error', () => undefined);
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1');
    next();
  });
}

beforeEach(async () => {
  arrived = new Map();
  server = createServer(serve);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseUrl = resolveBaseUrl(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, undefined);
  transport = socketTransport({
    baseUrl,
    environment: {},
    connections: { rest: CONNECTIONS },
    mostBytes: { rest: MOST_BYTES },
  });
});
afterEach(async () => {
  await transport.destroy();
  await new Promise((resolve) => server.close(resolve));
});

it.each([1, 2])(
  'every request ends once, with its own answer or a failure, and no connection is lost: %i',
  async (seed) => {
    chance = new Mutator(seed);
    const live = new Map<string, Subscription | undefined>();
    const wrong: string[] = [];
    let [made, answered, failed, cancelled] = [0, 0, 0, 0];

    const bodyOf = (): Pick<TransportRequest, 'body'> => {
      const size = chance.pick([0, 10, 300, 600_000]);
      const body = chance.pick([new Uint8Array(size).fill(120), 'x'.repeat(size), 'é'.repeat(size / 2)]);
      return size === 0 ? {} : { body };
    };
    const cancel = (name: string): void => {
      const subscription = live.get(name);
      // Not while it is being made, nor twice: cancelling one may end others, which cancel in turn.
      if (subscription === undefined) return;
      live.delete(name);
      cancelled++;
      subscription.unsubscribe();
    };
    const ended = (name: string, depth: number): void => {
      if (!live.delete(name)) wrong.push(`${name} ended twice or after it was cancelled`);
      if (depth < 6 && chance.below(10) < 3) start(depth + 1);
      if (chance.below(10) === 0 && live.size > 0) cancel(chance.pick([...live.keys()]));
    };
    const start = (depth: number): void => {
      const name = String(++made);
      const way = chance.pick([...Object.keys(WAYS), 'whole', 'whole', EARLY]);
      const headers: Record<string, string> = chance.below(16) === 0 ? { x: 'not\nsent' } : {};
      const path = `/${name}/${encodeURIComponent(way)}`;
      const request: TransportRequest = { method: 'POST', path, lane: 'rest', headers, timeoutMs: 60, ...bodyOf() };
      live.set(name, undefined);
      const subscription = withTimeout(
        transport.transport,
        asyncScheduler,
      )(request).subscribe({
        next: ({ body }: TransportResponse) => {
          answered++;
          const text = Buffer.from(body).toString();
          if (text !== name) wrong.push(`${name}, answered ${way}, got ${text.slice(0, 40)}`);
          ended(name, depth);
        },
        error: ({ kind }: TransportFailure) => {
          failed++;
          if (kind === undefined) wrong.push(`${name} failed without a kind`);
          ended(name, depth);
        },
      });
      if (live.has(name)) live.set(name, subscription);
      if (chance.below(10) === 0) cancel(name);
      else if (chance.below(7) === 0) setTimeout(cancel, chance.below(20), name);
    };

    while (made < REQUESTS) {
      if (live.size < 25) start(0);
      else await new Promise((resolve) => setTimeout(resolve, chance.below(4)));
    }
    while (live.size > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(wrong).toStrictEqual([]);
    expect([...arrived].filter(([, times]) => times > 1)).toStrictEqual([]);
    expect(answered + failed + cancelled).toBe(made);
    expect(Math.min(answered, failed, cancelled)).toBeGreaterThan(REQUESTS / 20);

    // All connections still serve, once the server has done what it does a moment later.
    await new Promise((resolve) => setTimeout(resolve, 100));
    const statuses = Array.from({ length: CONNECTIONS * 2 }, (_, at) => {
      const path = `/${made + 1 + at}/late`;
      return new Promise<number>((resolve, reject) =>
        transport
          .transport({ method: 'POST', path, lane: 'rest', headers: {}, timeoutMs: 5000 })
          .subscribe({ next: ({ status }) => resolve(status), error: reject }),
      );
    });
    expect(new Set(await Promise.all(statuses))).toStrictEqual(new Set([200]));
  },
  120_000,
);
