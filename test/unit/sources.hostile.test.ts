import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { setImmediate as turn } from 'node:timers/promises';
import { lastValueFrom, type Observable, take, toArray } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  BadRowError,
  fromCsv,
  fromJson,
  fromJsonl,
  fromParquet,
  fromRowBatches,
  fromServerSentEvents,
  type RowOptions,
  type SourceEvent,
  SourceError,
} from '../../src/sources/index.js';
import { ServerSentEventParser } from '../../src/support/http/ServerSentEventParser.js';
import { VirtualClock } from '../../src/testing/index.js';

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'hostile-'))));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
function file(content: string | Uint8Array, ending: string): string {
  const path = join(folder, `${files++}.${ending}`);
  writeFileSync(path, content);
  return path;
}
const all = <T>(source: Observable<T>) => lastValueFrom(source.pipe(toArray()));
const openFiles = () => readdirSync('/proc/self/fd').length;

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

describe('a batch that cannot be iterated', () => {
  it.each([undefined, null, 7, { rows: [] }])('ends the stream and not the process: %j', async (batch) => {
    const source = fromRowBatches<number>(async function* () {
      yield [1];
      await turn();
      yield batch as unknown as number[];
    });
    const seen: number[] = [];
    await expect(lastValueFrom(source.pipe(toArray()))).rejects.toThrow('a batch of rows must be iterable');
    await new Promise<void>((resolve) => {
      source.subscribe({ next: (row) => seen.push(row), error: () => resolve() });
    });
    await turn();
    expect([seen, unheard]).toStrictEqual([[1], []]);
  });

  it('is one whose iterator cannot be made, too', async () => {
    const broken: Iterable<number> = {
      [Symbol.iterator]() {
        throw new Error('no iterator');
      },
    };
    const source = fromRowBatches<number>(async function* () {
      await turn();
      yield broken;
    });
    await expect(all(source)).rejects.toThrow('no iterator');
    await turn();
    expect(unheard).toStrictEqual([]);
  });
});

describe('a batch that is left half way', () => {
  const batches = (returned: string[]) =>
    fromRowBatches(async function* () {
      try {
        await turn();
        yield (function* () {
          try {
            for (let row = 0; row < 10; row++) yield row;
          } finally {
            returned.push('rows');
          }
        })();
      } finally {
        returned.push('batches');
      }
    });

  it('is returned when the subscriber leaves on a row', async () => {
    const returned: string[] = [];
    expect(await all(batches(returned).pipe(take(3)))).toStrictEqual([0, 1, 2]);
    await turn();
    expect(returned.sort()).toStrictEqual(['batches', 'rows']);
  });

  it('is returned when the subscriber leaves while the batch is asked for a row', async () => {
    const returned: string[] = [];
    await new Promise<void>((resolve) => {
      const subscription = fromRowBatches(async function* () {
        await turn();
        yield (function* () {
          try {
            yield 1;
            subscription.unsubscribe();
            yield 2;
          } finally {
            returned.push('rows');
            resolve();
          }
        })();
      }).subscribe();
    });
    await turn();
    expect([returned, unheard]).toStrictEqual([['rows'], []]);
  });

  it('is not returned when it was walked through', async () => {
    const returned: string[] = [];
    const rows = {
      [Symbol.iterator]: () => ({
        next: () => ({ done: true as const, value: undefined }),
        return: () => (returned.push('rows'), { done: true as const, value: undefined }),
      }),
    };
    await all(
      fromRowBatches(async function* () {
        await turn();
        yield rows;
      }),
    );
    expect(returned).toStrictEqual([]);
  });
});

describe('unsubscribing from a file', () => {
  const sources: [string, () => Observable<unknown>][] = [
    ['jsonl', () => fromJsonl(file('1\n2\n', 'jsonl'))],
    ['json', () => fromJson(file('[1,2]', 'json'))],
    ['csv', () => fromCsv(file('a\n1\n', 'csv'))],
    ['parquet', () => fromParquet(new URL('./fixtures/sources/rows.none.parquet', import.meta.url))],
  ];
  it.runIf(process.platform === 'linux').each(sources)(
    'leaves none open, however early it is: %s',
    async (_, source) => {
      const before = openFiles();
      for (let round = 0; round < 40; round++) {
        const subscription = source().subscribe();
        // At once, while the file is looked at, while it is opened, and while it is read.
        for (let wait = 0; wait < round % 5; wait++) await (round % 2 === 0 ? turn() : Promise.resolve());
        subscription.unsubscribe();
      }
      // What was opened late is closed late.
      await vi.waitFor(() => expect(openFiles() - before).toBeLessThan(5), { timeout: 240_000 });
      expect(unheard).toStrictEqual([]);
    },
  );
});

describe('a row that is too long', () => {
  const long = 'x'.repeat(700_000);
  const options = (events: SourceEvent[]): RowOptions<unknown> => ({
    onBadRow: 'skip',
    maxRowBytes: 1000,
    onEvent: (event) => void (event.type === 'row-skipped' && events.push(event)),
  });
  const cases: [string, (options: RowOptions<unknown>) => Observable<unknown>, unknown[]][] = [
    ['jsonl', (given) => fromJsonl(file(`1\n"${long}"\n3\n`, 'jsonl'), given), [1, 3]],
    ['json', (given) => fromJson(file(`[1,\n"${long}",\n3]`, 'json'), given), [1, 3]],
    ['csv', (given) => fromCsv(file(`a\n1\n"${long}"\n3\n`, 'csv'), given), [{ a: '1' }, { a: '3' }]],
    [
      'csv of delimiters',
      (given) => fromCsv(file(`a\n1\n${','.repeat(5000)}\n3\n`, 'csv'), given),
      [{ a: '1' }, { a: '3' }],
    ],
  ];
  it.each(cases)('is skipped when bad rows are: %s', async (_, source, rows) => {
    const events: SourceEvent[] = [];
    expect(await all(source(options(events)))).toStrictEqual(rows);
    expect(events).toMatchObject([{ reason: 'longer than 1000 bytes' }]);
  });

  it.each(cases)('is a bad row with its line: %s', async (_, source) => {
    const error: unknown = await all(source({ maxRowBytes: 1000 })).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(BadRowError);
    expect((error as BadRowError).reason).toBe('longer than 1000 bytes');
  });

  it('is one at the end of the file, too, and one of exactly that length is not', async () => {
    const events: SourceEvent[] = [];
    expect(
      await all(fromJsonl(file(`"${'x'.repeat(998)}"\n"${'x'.repeat(999)}"`, 'jsonl'), options(events))),
    ).toHaveLength(1);
    expect(events).toHaveLength(1);
  });

  it('refuses maxRowBytes 0, and a header that is too long', async () => {
    await expect(all(fromJsonl(file('1', 'jsonl'), { maxRowBytes: 0 }))).rejects.toThrow(RangeError);
    await expect(all(fromCsv(file(`${long}\n1`, 'csv'), options([])))).rejects.toThrow(SourceError);
  });
});

describe('a damaged Parquet file', () => {
  it('is a SourceError or rows, and never an unhandled rejection', async () => {
    // A generator of its own: the same damage every time.
    let seed = 7;
    const chance = () => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
    const outcomes = { rows: 0, errors: 0 };
    const others: unknown[] = [];
    const path = join(folder, 'damaged.parquet');
    for (const name of ['chats', 'rows.brotli', 'rows.gzip', 'rows.none', 'rows.snappy', 'rows.zstd']) {
      const whole = readFileSync(new URL(`./fixtures/sources/${name}.parquet`, import.meta.url));
      for (let round = 0; round < 100; round++) {
        const damaged = Buffer.from(whole);
        for (let bytes = 1 + Math.floor(chance() * 3); bytes > 0; bytes--) {
          // Mostly in the footer, where the places of everything are.
          const among = chance() < 0.6 ? Math.min(damaged.length, 1200) : damaged.length;
          damaged[damaged.length - 1 - Math.floor(chance() * among)] = Math.floor(chance() * 256);
        }
        writeFileSync(path, damaged);
        await all(fromParquet(path)).then(
          () => outcomes.rows++,
          (error: unknown) => (error instanceof SourceError ? outcomes.errors++ : others.push(error)),
        );
        await turn();
      }
    }
    expect([unheard, others]).toStrictEqual([[], []]);
    expect(outcomes.rows + outcomes.errors).toBe(600);
    expect(outcomes.errors).toBeGreaterThan(100);
  });
});

describe('server-sent events', () => {
  const servers: http.Server[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    }
  });
  async function serve(handler: http.RequestListener): Promise<string> {
    const server = http.createServer(handler).listen(0, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }
  const STREAM = { 'content-type': 'text/event-stream' };

  it('of a long line take time in proportion to its length, in however many pieces it comes', () => {
    const looked = (pieces: number): number => {
      const parser = new ServerSentEventParser('');
      let characters = 0;
      // What the parser asks of a text is counted, not the time it takes.
      // oxlint-disable-next-line typescript/unbound-method -- put back below, and called with its own `this`
      const exec = RegExp.prototype.exec;
      RegExp.prototype.exec = function (this: RegExp, text: string) {
        characters += text.length - this.lastIndex;
        return exec.call(this, text);
      };
      try {
        parser.push('data: ');
        for (let piece = 0; piece < pieces; piece++) parser.push('x'.repeat(1000));
        expect(parser.push('\n\n')[0]!.data).toHaveLength(1000 * pieces);
      } finally {
        RegExp.prototype.exec = exec;
      }
      return characters;
    };
    expect(looked(400) / looked(100)).toBeLessThan(5);
  });

  it('end with an error where one is longer than it may be, and are not asked for again', async () => {
    let asked = 0;
    const url = await serve((_, response) => {
      asked++;
      response.writeHead(200, STREAM).end(`data: ${'x'.repeat(5000)}\n\n`);
    });
    const events = all(fromServerSentEvents(url, { maxEventLength: 1000, retryMs: 1 }));
    await expect(events).rejects.toMatchObject({
      code: 'event_stream',
      message: expect.stringContaining('longer than 1000') as string,
    });
    expect(asked).toBe(1);
  });

  it('may go on for ever with comments', () => {
    const parser = new ServerSentEventParser('', 100);
    for (let round = 0; round < 50; round++) expect(parser.push(': still here\n')).toStrictEqual([]);
    expect(parser.push('data: x\n\n')).toHaveLength(1);
  });

  it('wait at most an hour, whatever the server names', async () => {
    const clock = new VirtualClock();
    let asked = 0;
    const fetch = () => {
      asked++;
      return Promise.resolve(new Response(`retry: 9999999999\n\n`, { headers: STREAM }));
    };
    const subscription = fromServerSentEvents('http://fake.test/', { fetch, scheduler: clock }).subscribe();
    const settle = async () => {
      for (let round = 0; round < 20; round++) await turn();
    };
    await settle();
    clock.advanceBy(3_599_999);
    await settle();
    expect(asked).toBe(1);
    clock.advanceBy(1);
    await settle();
    expect(asked).toBe(2);
    subscription.unsubscribe();
  });

  it('never ask a timer for more than it can count, where maxRetryMs is longer', async () => {
    const asked: number[] = [];
    const clock = new VirtualClock();
    const scheduler = {
      now: () => clock.now(),
      schedule: ((work: never, delay?: number, state?: never) => {
        asked.push(delay ?? 0);
        return clock.schedule(work, delay, state);
      }) as VirtualClock['schedule'],
    };
    const fetch = () => Promise.reject(new Error('away'));
    const source = fromServerSentEvents('http://fake.test/', { fetch, scheduler, retryMs: 1e9, maxRetryMs: Infinity });
    const subscription = source.subscribe();
    for (let round = 0; round < 6; round++) {
      for (let wait = 0; wait < 10; wait++) await turn();
      clock.advanceBy(2 ** 31);
    }
    subscription.unsubscribe();
    expect(asked.length).toBeGreaterThan(3);
    expect(Math.max(...asked)).toBeLessThan(2 ** 31);
  });

  it('are asked for after an id that is no Latin-1, as its UTF-8', async () => {
    const ids: (string | undefined)[] = [];
    const url = await serve(({ headers }, response) => {
      const id = headers['last-event-id'] as string | undefined;
      ids.push(id === undefined ? undefined : Buffer.from(id, 'latin1').toString('utf8'));
      if (ids.length === 3) response.writeHead(204).end();
      else response.writeHead(200, STREAM).end(`id: 第${ids.length}步\ndata: x\n\n`);
    });
    expect(await all(fromServerSentEvents(url, { retryMs: 1 }))).toHaveLength(2);
    expect(ids).toStrictEqual([undefined, '第1步', '第2步']);
  });

  it('go on from the id before where one cannot be sent back', async () => {
    const ids: (string | undefined)[] = [];
    const url = await serve(({ headers }, response) => {
      ids.push(headers['last-event-id'] as string | undefined);
      if (ids.length === 2) response.writeHead(204).end();
      else response.writeHead(200, STREAM).end('id: 1\ndata: x\n\nid: \u0001\ndata: y\n\n');
    });
    await all(fromServerSentEvents(url, { retryMs: 1 }));
    expect(ids).toStrictEqual([undefined, '1']);
  });

  it.each(['', 'events', 'http://', 'ftp://host/events', 'http://user:secret@host/'])(
    'refuse the address %j at once, instead of trying for ever',
    (url) => {
      expect(() => fromServerSentEvents(url)).toThrow(RangeError);
    },
  );

  it('refuse a header that cannot be sent, and tell no secret', () => {
    const refusal = (url: string, headers: Record<string, string> = {}): string => {
      try {
        fromServerSentEvents(url, { headers });
        return '';
      } catch (error) {
        return inspect(error);
      }
    };
    expect(refusal('http://host/', { 'x-key': 'hush\nb' })).toContain('RangeError');
    expect(refusal('http://host/', { 'x-key': 'hush\nb' })).not.toContain('hush');
    expect(refusal('http://user:hush@host/')).toContain('//…@host');
    expect(refusal('http://user:hush@host/')).not.toContain('hush');
  });
});
