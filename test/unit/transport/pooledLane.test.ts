import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { firstValueFrom, type Subscription } from 'rxjs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { resolveBaseUrl } from '../../../src/transport/baseUrl.js';
import type { TransportRequest } from '../../../src/transport/Transport.js';
import { undiciTransport, type UndiciTransport } from '../../../src/transport/undiciTransport.js';

let server: Server;
let held: Map<string, ServerResponse>;
let arrived: string[];
let opened: number;
let lane: UndiciTransport;

beforeEach(async () => {
  held = new Map();
  arrived = [];
  opened = 0;
  server = createServer((request, response) => {
    arrived.push(request.url!);
    held.set(request.url!, response);
  });
  server.on('connection', () => opened++);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  lane = undiciTransport({
    baseUrl: resolveBaseUrl(`http://127.0.0.1:${port}`, undefined),
    environment: {},
    connections: { rest: 2 },
  });
});
afterEach(async () => {
  await lane.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const ask = (path: string) => {
  const request: TransportRequest = { method: 'GET', path, lane: 'rest', headers: {}, timeoutMs: 10_000 };
  return lane.transport(request);
};
const until = async (done: () => boolean): Promise<void> => {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 2));
};
const answer = (path: string): void => void held.get(path)!.end('{}');

it('a lane opens no more connections than it may, and carries in order what waits for one', async () => {
  const answers = ['/a', '/b', '/c', '/d'].map((path) => firstValueFrom(ask(path)));
  await until(() => arrived.length === 2);
  answer('/b');
  await until(() => arrived.length === 3);
  answer('/a');
  await until(() => arrived.length === 4);
  answer('/c');
  answer('/d');
  expect((await Promise.all(answers)).map(({ status }) => status)).toStrictEqual([200, 200, 200, 200]);
  expect([arrived.slice(0, 2).toSorted(), ...arrived.slice(2)]).toStrictEqual([['/a', '/b'], '/c', '/d']);
  expect(opened).toBe(2);
});

it('what is cancelled while it waits for a connection is never sent', async () => {
  const first = ['/a', '/b'].map((path) => firstValueFrom(ask(path)));
  const waiting: Subscription = ask('/never').subscribe();
  const last = firstValueFrom(ask('/c'));
  await until(() => arrived.length === 2);
  waiting.unsubscribe();
  answer('/a');
  await until(() => arrived.length === 3);
  answer('/b');
  answer('/c');
  await Promise.all([...first, last]);
  expect(arrived).not.toContain('/never');
});

it('a connection whose request was cancelled is used again', async () => {
  const cancelled = ['/a', '/b'].map((path) => ask(path).subscribe());
  await until(() => arrived.length === 2);
  for (const each of cancelled) each.unsubscribe();
  const next = firstValueFrom(ask('/c'));
  await until(() => arrived.length === 3);
  answer('/c');
  expect((await next).status).toBe(200);
});

it('closing waits for what waits for a connection', async () => {
  const answers = ['/a', '/b', '/c'].map((path) => firstValueFrom(ask(path)));
  await until(() => arrived.length === 2);
  let closed = false;
  const closing = lane.close().then(() => (closed = true));
  answer('/a');
  await until(() => arrived.length === 3);
  expect(closed).toBe(false);
  answer('/b');
  answer('/c');
  await Promise.all(answers);
  await closing;
  expect(closed).toBe(true);
});

it('destroying fails what is in flight and what waits for a connection', async () => {
  const failures = ['/a', '/b', '/c'].map((path) => expect(firstValueFrom(ask(path))).rejects.toThrow(/destroyed/));
  await until(() => arrived.length === 2);
  await lane.destroy();
  await Promise.all(failures);
  expect(arrived).not.toContain('/c');
});
