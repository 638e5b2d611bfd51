/**
 * Requests to servers that answer in every way they can, over plain HTTP/1.1 and over HTTP/2, cancelled and made again at any moment, also
 * by what hears of another's end. `npm run test:fuzz` goes on for longer.
 */
import { asyncScheduler, type Subscription } from 'rxjs';
import { expect, it } from 'vitest';
import { resolveBaseUrl } from '../../src/transport/baseUrl.js';
import { socketTransport } from '../../src/transport/socketTransport.js';
import { withTimeout } from '../../src/transport/withTimeout.js';
import type { TransportFailure, TransportRequest, TransportResponse } from '../../src/transport/Transport.js';
import { certificate } from '../loopback/support/fakeService.js';
import { fuzzHttp1, TOO_LARGE } from './support/fuzzHttp1.js';
import { fuzzHttp2 } from './support/fuzzHttp2.js';
import { Mutator } from './support/mutate.js';

const REQUESTS = process.env['TINKER_RX_SUITE'] === 'long' ? 10_000 : 200;
const CONNECTIONS = 4;
const SERVERS = { 'HTTP/1.1': fuzzHttp1, 'HTTP/2': fuzzHttp2 } as const;

it.each([
  ['HTTP/1.1', 1],
  ['HTTP/1.1', 2],
  ['HTTP/2', 1],
  ['HTTP/2', 2],
] as const)(
  'every request ends once, with its own answer or a failure, and no connection is lost: over %s, %i',
  async (protocol, seed) => {
    const server = await SERVERS[protocol]();
    const transport = socketTransport({
      baseUrl: resolveBaseUrl(server.url, undefined),
      environment: {},
      connections: { rest: CONNECTIONS },
      mostBytes: { rest: TOO_LARGE.length - 1 },
      tls: { ca: certificate() },
    });
    const chance = new Mutator(seed);
    const live = new Map<string, Subscription | undefined>();
    const wrong: string[] = [];
    let [made, answered, failed, cancelled] = [0, 0, 0, 0];

    const bodyOf = (way: string): Pick<TransportRequest, 'body'> => {
      // A large body gets more time, which a request that is never answered would take.
      const size = chance.pick([0, 10, 300, way === 'never' ? 300 : 600_000]);
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
      const way = chance.pick([...server.ways, 'whole', 'whole']);
      const headers: Record<string, string> = chance.below(16) === 0 ? { x: 'not\nsent' } : {};
      const path = `/${name}/${encodeURIComponent(way)}`;
      const timeoutMs = way === 'never' ? 60 : 30_000;
      const request: TransportRequest = { method: 'POST', path, lane: 'rest', headers, timeoutMs, ...bodyOf(way) };
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
          if (kind === 'timeout' && way !== 'never') wrong.push(`${name}, answered ${way}, was lost`);
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
    expect([...server.arrived].filter(([, times]) => times > 1)).toStrictEqual([]);
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
    await transport.destroy();
    await server.close();
  },
  120_000,
);
