import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { resolveBaseUrl } from '../../../src/transport/baseUrl.js';
import { undiciTransport, type UndiciTransport } from '../../../src/transport/undiciTransport.js';

let server: Server;
let arrived: string[];
let transport: UndiciTransport;

beforeEach(async () => {
  arrived = [];
  server = createServer((request, response) => {
    arrived.push(request.url!);
    response.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  // Connections are loaded anew for each transport: its first requests always wait.
  const baseUrl = resolveBaseUrl(`http://127.0.0.1:${port}`, undefined);
  transport = undiciTransport({ baseUrl, environment: {}, connections: { rest: 1 } });
});
afterEach(async () => {
  await transport.destroy();
  await new Promise((resolve) => server.close(resolve));
});

const ask = (path: string) =>
  transport.transport({ method: 'GET', path, lane: 'rest', headers: {}, timeoutMs: 10_000 });

it('requests made before connections are loaded go out in the order in which they were made', async () => {
  await Promise.all(['/a', '/b', '/c', '/d'].map((path) => firstValueFrom(ask(path))));
  expect(arrived).toStrictEqual(['/a', '/b', '/c', '/d']);
});

it('what is cancelled before connections are loaded is never sent', async () => {
  const cancelled = ask('/never').subscribe();
  const other = firstValueFrom(ask('/other'));
  cancelled.unsubscribe();
  await other;
  expect(arrived).toStrictEqual(['/other']);
});

it('closing before connections are loaded waits for what was asked', async () => {
  const answer = firstValueFrom(ask('/a'));
  await transport.close();
  expect((await answer).status).toBe(200);
});

it('destroying before connections are loaded fails what was asked, and sends nothing', async () => {
  const failure = expect(firstValueFrom(ask('/a'))).rejects.toThrow(/destroyed/);
  await transport.destroy();
  await failure;
  expect(arrived).toStrictEqual([]);
});

it('closes at once when nothing was asked', async () => {
  await transport.close();
  expect(arrived).toStrictEqual([]);
});
