import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { firstValueFrom, type Subscription } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { resolveBaseUrl } from '../../../src/transport/baseUrl.js';
import type { Lane, TransportFailure, TransportRequest } from '../../../src/transport/Transport.js';
import { certificate, identity } from '../../loopback/support/fakeService.js';
import { socketTransport, type SocketTransport } from '../../../src/transport/socketTransport.js';

let server: Server;
let held: Map<string, ServerResponse>;
let arrived: string[];
let opened: number;
let lane: SocketTransport;

const holding: RequestListener = (request, response) => {
  arrived.push(request.url!);
  held.set(request.url!, response);
};
async function start(scheme: 'http' | 'https' = 'http'): Promise<void> {
  held = new Map();
  arrived = [];
  opened = 0;
  server = scheme === 'http' ? createServer(holding) : createHttpsServer(identity(), holding);
  server.on('connection', () => opened++);
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  const { port } = server.address() as AddressInfo;
  lane = socketTransport({
    baseUrl: resolveBaseUrl(`${scheme}://localhost:${port}`, undefined),
    environment: {},
    connections: { rest: 2 },
    tls: { ca: certificate() },
  });
}
afterEach(async () => {
  await lane.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const ask = (path: string, of: Lane = 'rest') => {
  const request: TransportRequest = { method: 'GET', path, lane: of, headers: {}, timeoutMs: 10_000 };
  return lane.transport(request);
};
const until = async (done: () => boolean): Promise<void> => {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 2));
};
const answer = (path: string): void => void held.get(path)!.end('{}');

// Over TLS the connections are undici's.
describe.each(['http', 'https'] as const)('a lane over %s', (scheme) => {
  beforeEach(() => start(scheme));

  it('opens no more connections than it may, and carries in order what waits for one', async () => {
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
    // Over TLS, one more has asked for the protocol.
    expect(opened).toBe(scheme === 'http' ? 2 : 3);
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
});

describe.each(['http', 'https'] as const)('the end of a lane over %s', (scheme) => {
  beforeEach(() => start(scheme));

  it('waited for the server where closing came before destroying', async () => {
    const failures = ['/a', '/b', '/c'].map((path) => expect(firstValueFrom(ask(path))).rejects.toThrow(/destroyed/));
    await until(() => arrived.length === 2);
    const closing = lane.close();
    await new Promise((resolve) => setImmediate(resolve));
    await lane.destroy();
    await Promise.all([...failures, closing]);
    expect(arrived).not.toContain('/c');
  });

  it('waited for the server where the lane had been given up for another', async () => {
    const failure = expect(firstValueFrom(ask('/a'))).rejects.toThrow(/destroyed/);
    await until(() => arrived.length === 1);
    const refused = firstValueFrom(ask('/proxy'));
    await until(() => arrived.length === 2);
    held.get('/proxy')!.writeHead(400, { 'content-length': '0' }).end();
    await refused;
    await lane.destroy();
    await failure;
  });

  it('of a server that is gone threw where nobody could catch it: each request fails', async () => {
    const first = firstValueFrom(ask('/a'));
    await until(() => arrived.length === 1);
    answer('/a');
    await first;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    const kinds = ['/b', '/c', '/d'].map((path) =>
      firstValueFrom(ask(path)).catch((error: TransportFailure) => error.kind),
    );
    expect(await Promise.all(kinds)).toStrictEqual(['connection', 'connection', 'connection']);
  });
});

describe('a burst of requests', () => {
  beforeEach(() => start());
  // The lane looks every 100 ms whether more connections would help. Here that moment comes when the test says so.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());
  const arrivals = async (count: number): Promise<void> => {
    while (arrived.length < count) await new Promise((resolve) => setImmediate(resolve));
  };
  const pathsOf = (count: number): string[] => Array.from({ length: count }, (_, index) => `/${index}`);

  it('opened a connection for every request: those that are answered at once share 32', async () => {
    server.on('request', (_, response) => response.end('{}'));
    const answers = await Promise.all(pathsOf(400).map((path) => firstValueFrom(ask(path, 'polls'))));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(opened).toBe(32);
  });

  it('gets a connection each where the service holds the requests', async () => {
    const paths = pathsOf(200);
    const answers = paths.map((path) => firstValueFrom(ask(path, 'polls')));
    for (const connections of [32, 64, 128, 200]) {
      await arrivals(connections);
      expect([arrived.length, opened]).toStrictEqual([connections, connections]);
      vi.advanceTimersByTime(100);
    }
    paths.forEach(answer);
    expect(await Promise.all(answers)).toHaveLength(paths.length);
  });
});

describe('room in a lane', () => {
  beforeEach(() => start());

  it('says whether there is room, and when there is again', async () => {
    let told = 0;
    const hasRoom = (): boolean => lane.transport.hasRoom!('rest', () => told++);
    expect(hasRoom()).toBe(true);
    const answers = ['/a', '/b'].map((path) => firstValueFrom(ask(path)));
    await until(() => arrived.length === 2);
    expect([hasRoom(), hasRoom()]).toStrictEqual([false, false]);
    expect(told).toBe(0);
    answer('/a');
    await until(() => told > 0);
    expect(hasRoom()).toBe(true);
    answer('/b');
    await Promise.all(answers);
    expect(hasRoom()).toBe(true);
  });

  it('says that there is room when a lane is closed, since the next request gets a new one', async () => {
    let told = 0;
    const failures = ['/a', '/b'].map((path) => expect(firstValueFrom(ask(path))).rejects.toThrow(/destroyed/));
    await until(() => arrived.length === 2);
    expect(lane.transport.hasRoom!('rest', () => told++)).toBe(false);
    await lane.destroy();
    expect(told).toBe(1);
    await Promise.all(failures);
  });
});
