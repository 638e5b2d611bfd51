import type { Server } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { resolveBaseUrl } from '../../../src/transport/baseUrl.js';
import { certificate, identity } from '../../loopback/support/fakeService.js';
import { socketTransport, type SocketTransport } from '../../../src/transport/socketTransport.js';

let server: Server;
let arrived: string[];
let transport: SocketTransport;

beforeEach(async () => {
  arrived = [];
  server = createServer(identity(), (request, response) => {
    arrived.push(request.url!);
    response.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  const { port } = server.address() as AddressInfo;
  // Connections for HTTP/1.1 over TLS are undici's. They are loaded anew for each transport: its first requests always wait.
  const baseUrl = resolveBaseUrl(`https://localhost:${port}`, undefined);
  transport = socketTransport({ baseUrl, environment: {}, connections: { rest: 1 }, tls: { ca: certificate() } });
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
