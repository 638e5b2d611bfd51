import http from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import {
  asyncScheduler,
  BehaviorSubject,
  firstValueFrom,
  lastValueFrom,
  map,
  NEVER,
  of,
  Subject,
  take,
  tap,
  throwError,
  toArray,
  type SchedulerAction,
  type SchedulerLike,
} from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import { ServerSentEventParser } from '../../src/support/http/ServerSentEventParser.js';
import { fromServerSentEvents, type ServerSentEvent, type ServerSentEventsOptions } from '../../src/sources/index.js';
import { toServerSentEvents } from '../../src/sinks/index.js';

const servers: http.Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }
});

async function serve(handler: http.RequestListener, port = 0): Promise<string> {
  const server = http.createServer(handler).listen(port, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
const STREAM = { 'content-type': 'text/event-stream' };
const quick: ServerSentEventsOptions = { retryMs: 5, maxRetryMs: 20 };
const datas = map(({ data }: ServerSentEvent) => data);

describe('ServerSentEventParser', () => {
  const parse = (...texts: string[]) => {
    const parser = new ServerSentEventParser('');
    return texts.flatMap((text) => parser.push(text));
  };

  it('reads fields, comments and every kind of line end', () => {
    expect(
      parse('\uFEFFid: 1\nevent: step\ndata: a\ndata:b\n\n: comment\r\ndata\r\n\r\nid:2\rdata:  c\r\r\n'),
    ).toStrictEqual([
      { type: 'step', data: 'a\nb', id: '1' },
      { type: 'message', data: '', id: '1' },
      { type: 'message', data: ' c', id: '2' },
    ]);
  });

  it('sends no event without data, and none that was not ended', () => {
    expect(parse('event: x\n\nid: 3\n\ndata: cut off\n')).toStrictEqual([]);
  });

  it('takes an id only when its event is whole, so that a reconnect asks for what was cut off', () => {
    const parser = new ServerSentEventParser('1');
    parser.push('id: 2\ndata: x');
    expect(parser.lastEventId).toBe('1');
    parser.push('\n\n');
    expect(parser.lastEventId).toBe('2');
  });

  it('ignores ids with a null and retries that are no number', () => {
    const parser = new ServerSentEventParser('');
    parser.push('id: a\0b\nretry: soon\n\n');
    expect([parser.lastEventId, parser.retryMs]).toStrictEqual(['', undefined]);
    parser.push('retry: 250\n\n');
    expect(parser.retryMs).toBe(250);
  });

  it('gives the same events wherever the text is cut', () => {
    const text = 'id: 1\r\ndata: a\r\ndata: b\r\n\r\nevent: x\rdata: c\r\rdata: d\n\n';
    const whole = parse(text);
    fc.assert(
      fc.property(fc.array(fc.nat(text.length)), (cuts) => {
        const places = [0, ...cuts.toSorted((a, b) => a - b), text.length];
        const parts = places.slice(1).map((end, place) => text.slice(places[place], end));
        expect(parse(...parts)).toStrictEqual(whole);
      }),
    );
  });
});

describe('fromServerSentEvents', () => {
  it('emits events, and completes when the server says there are no more', async () => {
    let hits = 0;
    const url = await serve((_, response) => {
      if (hits++ === 0) response.writeHead(200, STREAM).end('id: 7\ndata: {"a":1}\n\n');
      else response.writeHead(204).end();
    });
    expect(await lastValueFrom(fromServerSentEvents(url, quick).pipe(toArray()))).toStrictEqual([
      { type: 'message', data: '{"a":1}', id: '7' },
    ]);
    expect(hits).toBe(2);
  });

  it('asks to go on after the last whole event when the connection breaks, with its headers', async () => {
    const asked: (string | undefined)[] = [];
    const url = await serve((request, response) => {
      asked.push(`${request.headers['last-event-id'] as string} ${request.headers['x-key'] as string}`);
      response.writeHead(200, STREAM);
      response.write(`id: ${asked.length}\ndata: ${asked.length}\n\nid: 99\ndata: torn`);
      setTimeout(() => response.destroy(), 5);
    });
    const events = fromServerSentEvents(url, { ...quick, lastEventId: '0', headers: { 'x-key': 'k' } });
    expect(await lastValueFrom(events.pipe(datas, take(3), toArray()))).toStrictEqual(['1', '2', '3']);
    expect(asked).toStrictEqual(['0 k', '1 k', '2 k']);
  });

  it('tries again while the server is away, waiting longer each time, and says so', async () => {
    const states: string[] = [];
    const url = await serve((_, response) => response.destroy());
    const port = Number(new URL(url).port);
    const first = firstValueFrom(fromServerSentEvents(url, { ...quick, onState: (state) => states.push(state) }));
    await vi.waitFor(() => expect(states.filter((state) => state === 'lost').length).toBeGreaterThan(2), 240_000);
    servers[0]!.closeAllConnections();
    servers.splice(0).forEach((server) => server.close());
    await serve((_, response) => response.writeHead(200, STREAM).end('data: back\n\n'), port);
    expect((await first).data).toBe('back');
    expect(states.slice(0, 3)).toStrictEqual(['connecting', 'lost', 'connecting']);
    expect(states.at(-1)).toBe('open');
  });

  it("waits as long as the server's retry says", async () => {
    const url = await serve((_, response) => response.writeHead(200, STREAM).end('retry: 120\ndata: x\n\n'));
    const schedule = vi.spyOn(asyncScheduler, 'schedule');
    await lastValueFrom(fromServerSentEvents(url, quick).pipe(take(2)));
    expect(schedule.mock.calls.map(([, delayMs]) => delayMs)).toStrictEqual([120]);
    schedule.mockRestore();
  });

  it("waits at least 100 ms, also where the server's retry is 0", async () => {
    const url = await serve((_, response) => response.writeHead(200, STREAM).end('retry: 0\ndata: x\n\n'));
    const waits: (number | undefined)[] = [];
    const scheduler: SchedulerLike = {
      now: () => asyncScheduler.now(),
      schedule: <T>(work: (this: SchedulerAction<T>, state?: T) => void, delayMs?: number, state?: T) => {
        waits.push(delayMs);
        return asyncScheduler.schedule(work, 0, state);
      },
    };
    await lastValueFrom(fromServerSentEvents(url, { retryMs: 5, scheduler }).pipe(take(3)));
    expect(waits).toStrictEqual([100, 100]);
  });

  it('tries again after 503, and fails for good after 404 or something else than events', async () => {
    let hits = 0;
    const url = await serve((request, response) => {
      hits++;
      if (request.url === '/busy' && hits < 3) response.writeHead(503).end();
      else if (request.url === '/busy') response.writeHead(200, STREAM).end('data: x\n\n');
      else if (request.url === '/page') response.writeHead(200, { 'content-type': 'text/html' }).end('<p>');
      else response.writeHead(404).end();
    });
    expect((await firstValueFrom(fromServerSentEvents(`${url}busy`, quick))).data).toBe('x');
    await expect(lastValueFrom(fromServerSentEvents(`${url}none`, quick))).rejects.toMatchObject({
      code: 'event_stream',
      status: 404,
      retryable: false,
    });
    await expect(lastValueFrom(fromServerSentEvents(`${url}page`, quick))).rejects.toThrow(
      'expected an event stream, got text/html',
    );
  });

  it('closes the connection when unsubscribed, and stops trying', async () => {
    let open = 0;
    let hits = 0;
    const url = await serve((request, response) => {
      open++;
      hits++;
      request.on('close', () => open--);
      response.writeHead(200, STREAM).write('data: x\n\n');
    });
    await firstValueFrom(fromServerSentEvents(url, quick));
    await vi.waitFor(() => expect(open).toBe(0), 240_000);
    expect(hits).toBe(1);
  });

  it('stops reading while what is downstream is full', async () => {
    const url = await serve((_, response) => {
      response.writeHead(200, STREAM).write('data: x\n\n'.repeat(10));
    });
    let seen = 0;
    const subscription = fromServerSentEvents(url, quick)
      .pipe(
        tap(() => seen++),
        concatMapAhead(() => NEVER, { ahead: 1 }),
      )
      .subscribe();
    await vi.waitFor(() => expect(seen).toBe(2), 240_000);
    // It reads no further.
    await sleep(50);
    expect(seen).toBe(2);
    subscription.unsubscribe();
  });

  it('imports nothing of Node, so that it can be bundled for browsers', () => {
    const visited = new Set<string>();
    const visit = (file: URL) => {
      if (visited.has(file.href)) return;
      visited.add(file.href);
      const code = readFileSync(file, 'utf8');
      for (const [, type, name] of code.matchAll(/^(?:import|export) (type )?[^;]*?from '([^']+)';/gms)) {
        if (type !== undefined) continue;
        expect(name, file.pathname).not.toMatch(/^node:/);
        if (name!.startsWith('.')) visit(new URL(name!.replace(/\.js$/, '.ts'), file));
      }
    };
    visit(new URL('../../src/sources/fromServerSentEvents.ts', import.meta.url));
    expect(visited.size).toBeGreaterThan(3);
  });

  it('refuses retryMs -1', () => {
    expect(() => fromServerSentEvents('http://x', { retryMs: -1 })).toThrow(RangeError);
  });
});

describe('toServerSentEvents', () => {
  it('sends values to all who are there, as JSON with their type', async () => {
    const source = new Subject<{ kind: string; tokens: Int32Array }>();
    const sink = toServerSentEvents(source, { type: ({ kind }) => kind });
    const url = await serve(sink.handle);
    const clients = [0, 1].map(() => lastValueFrom(fromServerSentEvents(url, quick).pipe(toArray())));
    while (sink.clients < 2) await sleep(1);
    source.next({ kind: 'step', tokens: Int32Array.of(1, 2) });
    source.next({ kind: 'two\nlines', tokens: Int32Array.of() });
    source.complete();
    for (const client of clients) {
      expect((await client).map(({ type, data }) => [type, data])).toStrictEqual([
        ['step', '{"kind":"step","tokens":[1,2]}'],
        ['two lines', '{"kind":"two\\nlines","tokens":[]}'],
      ]);
    }
  });

  it('replays what a client missed, as far as it is held, and all to a newcomer', async () => {
    const source = new Subject<number>();
    const sink = toServerSentEvents(source, { replay: 3 });
    const url = await serve(sink.handle);
    for (let value = 1; value <= 5; value++) source.next(value);
    const newcomer = await lastValueFrom(fromServerSentEvents(url, quick).pipe(take(3), toArray()));
    expect(newcomer.map(({ data }) => data)).toStrictEqual(['3', '4', '5']);
    const back = fromServerSentEvents(url, { ...quick, lastEventId: newcomer[1]!.id });
    expect((await firstValueFrom(back)).data).toBe('5');
    const stranger = fromServerSentEvents(url, { ...quick, lastEventId: 'other-2' });
    expect((await firstValueFrom(stranger)).data).toBe('3');
    sink.close();
  });

  it('loses and doubles nothing over a connection that breaks again and again', async () => {
    const source = new Subject<number>();
    const sink = toServerSentEvents(source);
    let sockets: http.ServerResponse[] = [];
    const url = await serve((request, response) => {
      sockets.push(response);
      sink.handle(request, response);
    });
    const seen = lastValueFrom(fromServerSentEvents(url, quick).pipe(datas, toArray()));
    for (let value = 0; value < 200; value++) {
      source.next(value);
      if (value % 20 === 10) {
        sockets.forEach((socket) => socket.destroy());
        sockets = [];
      }
      await sleep(1);
    }
    source.complete();
    expect(await seen).toStrictEqual(Array.from({ length: 200 }, (_, value) => String(value)));
  });

  it('sends an error as an event, and then ends', async () => {
    const sink = toServerSentEvents(throwError(() => new Error('lost it')));
    const url = await serve(sink.handle);
    const events = await lastValueFrom(fromServerSentEvents(url, quick).pipe(toArray()));
    expect(events.map(({ type, data }) => [type, data])).toStrictEqual([['error', '{"message":"lost it"}']]);
  });

  it('sends what came before the end to those who come after it, and 204 to who has all', async () => {
    const sink = toServerSentEvents(of('a', 'b'));
    const url = await serve(sink.handle);
    expect(await lastValueFrom(fromServerSentEvents(url, quick).pipe(datas, toArray()))).toStrictEqual(['"a"', '"b"']);
    const none = toServerSentEvents(of('a'), { replay: 0 });
    const empty = await serve(none.handle);
    expect((await fetch(empty)).status).toBe(204);
  });

  it('keeps the connection alive', async () => {
    const sink = toServerSentEvents(NEVER, { keepAliveMs: 10 });
    const url = await serve(sink.handle);
    const response = await fetch(url);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let text = '';
    while (!text.includes('still here')) text += Buffer.from((await reader.read()).value!).toString();
    expect(response.headers.get('cache-control')).toBe('no-store');
    sink.close();
    expect((await reader.read()).done || (await reader.read()).done).toBe(true);
  });

  it('lets a client go that does not read, and not the others', async () => {
    const source = new Subject<string>();
    const sink = toServerSentEvents(source, { maxWaitingBytes: 100_000, replay: 1 });
    const url = await serve(sink.handle);
    const slow = http.get(url).on('error', () => {});
    slow.on('response', (response) => response.pause());
    const got: number[] = [];
    const good = fromServerSentEvents(url, quick).subscribe(({ data }) => got.push(data.length));
    while (sink.clients < 2) await sleep(1);
    for (let value = 0; value < 200 && sink.clients === 2; value++) {
      source.next('x'.repeat(50_000));
      await sleep(2);
    }
    await vi.waitFor(() => expect(sink.clients).toBe(1), 240_000);
    await vi.waitFor(() => expect(got.length).toBeGreaterThan(10), 240_000);
    good.unsubscribe();
    slow.destroy();
    sink.close();
  });

  it('subscribes once, at once, and unsubscribes when closed', () => {
    const source = new BehaviorSubject(1);
    const sink = toServerSentEvents(source);
    expect(source.observed).toBe(true);
    sink.close();
    expect(source.observed).toBe(false);
  });

  it.each([{ replay: -1 }, { keepAliveMs: 0 }])('refuses %j', (options) => {
    expect(() => toServerSentEvents(NEVER, options)).toThrow(RangeError);
  });
});

describe('a redirect', () => {
  const stream = (response: http.ServerResponse) =>
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: hello\n\n');

  it('to another host carried the x-api-key there', async () => {
    const seen: http.IncomingHttpHeaders[] = [];
    const other = await serve((request, response) => {
      seen.push(request.headers);
      stream(response);
    });
    const first = await serve((_, response) => response.writeHead(302, { location: other }).end());
    const events = fromServerSentEvents(first, {
      headers: { 'x-api-key': 'SECRET', cookie: 'SECRET' },
      lastEventId: '7',
    });
    expect((await firstValueFrom(events)).data).toBe('hello');
    expect(seen).toHaveLength(1);
    expect(JSON.stringify(seen)).not.toContain('SECRET');
    expect(seen[0]).toMatchObject({ accept: 'text/event-stream', 'last-event-id': '7' });
  });

  it('within its host keeps the headers, and one without an end is an error', async () => {
    const seen: (string | string[] | undefined)[] = [];
    const url = await serve((request, response) => {
      seen.push(request.headers['x-api-key']);
      if (request.url === '/') response.writeHead(307, { location: '/events' }).end();
      else if (request.url === '/events') stream(response);
      else response.writeHead(302, { location: '/loop' }).end();
    });
    const headers = { 'x-api-key': 'SECRET' };
    expect((await firstValueFrom(fromServerSentEvents(url, { headers }))).data).toBe('hello');
    expect(seen).toEqual(['SECRET', 'SECRET']);
    await expect(firstValueFrom(fromServerSentEvents(`${url}loop`, { headers }))).rejects.toThrow(
      'the server redirects more than 20 times',
    );
  });
});
