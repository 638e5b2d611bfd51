import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { firstValueFrom, lastValueFrom, of, Subject, take, throwError, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { progressBar, toServerSentEvents, type ToServerSentEventsOptions } from '../../src/sinks/index.js';
import { fromServerSentEvents } from '../../src/sources/index.js';

/** Failures that nobody was there to hear: each would end a program. */
const unheard: unknown[] = [];
const hear = (error: unknown) => unheard.push(error);
beforeEach(() => {
  unheard.length = 0;
  process.prependListener('unhandledRejection', hear).prependListener('uncaughtException', hear);
});
afterEach(() => {
  process.off('unhandledRejection', hear).off('uncaughtException', hear);
});
/** RxJS reports what nobody catches from a timer. */
const reported = async () => {
  await new Promise((resolve) => setTimeout(resolve, 5));
  await turn();
  return unheard;
};

describe('toServerSentEvents', () => {
  const circular: { self?: unknown } = {};
  circular.self = circular;
  const cases: [string, unknown, ToServerSentEventsOptions<unknown>][] = [
    ['a value that holds itself', circular, {}],
    [
      'a throw in encode',
      2,
      {
        encode: (value) => {
          if (value === 2) throw new Error('no 2');
          return value;
        },
      },
    ],
    [
      'a throw in type',
      2,
      {
        type: (value) => {
          if (value === 2) throw new Error('no 2');
          return 'message';
        },
      },
    ],
  ];
  it.each(cases)('survives %s: it is told, and the others follow', async (_, value, options) => {
    const values = new Subject<unknown>();
    const sink = toServerSentEvents(values, options);
    const server = http.createServer(sink.handle).listen(0, '127.0.0.1');
    await once(server, 'listening');
    values.next(1);
    values.next(value);
    values.next(3);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const events = await firstValueFrom(fromServerSentEvents(url).pipe(take(3), toArray()));
    sink.close();
    server.closeAllConnections();
    server.close();
    expect(events.map(({ type }) => type)).toStrictEqual(['message', 'unsendable', 'message']);
    expect(JSON.parse(events[1]!.data)).toHaveProperty('message');
    expect([events[0]!.data, events[2]!.data]).toStrictEqual(['1', '3']);
    expect(await reported()).toStrictEqual([]);
  });
});

describe('progressBar', () => {
  it.each(['source$', 'events$'])('is not ended, nor is the process, by a failing %s', async (which) => {
    const written: string[] = [];
    const stream = { write: (text: string) => written.push(text) };
    const failing = throwError(() => new Error('the file is gone'));
    expect(await lastValueFrom(of(1, 2).pipe(progressBar({ stream, [which]: failing })))).toBe(2);
    expect(written.join('')).toContain('2 steps');
    expect(await reported()).toStrictEqual([]);
  });
});
