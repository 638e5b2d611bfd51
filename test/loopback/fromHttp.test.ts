/** Rows by POST on a real server: what each is answered, and what the pipeline gets. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import * as t from 'io-ts';
import { map, Observable, Subject, type Subscription, take } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { backpressure$, concatMapAhead } from '../../src/operators/index.js';
import { toJsonl } from '../../src/sinks/index.js';
import { fromHttp, type FromHttpOptions, type RowSchema, SourceError, toPreference } from '../../src/sources/index.js';

const running: Subscription[] = [];
afterEach(() => {
  for (const subscription of running.splice(0)) subscription.unsubscribe();
});

interface Running<T> {
  readonly url: string;
  readonly seen: T[];
  readonly subscription: Subscription;
}

/** Listens, and resolves with the address. */
function start<T, R = T>(
  options: Partial<FromHttpOptions<T>> = {},
  pipeline: (rows: Observable<T>) => Observable<R> = (rows) => rows as unknown as Observable<R>,
): Promise<Running<R>> {
  return new Promise((resolve, reject) => {
    const seen: R[] = [];
    const onListening = (url: string) => resolve({ url, seen, subscription });
    const rows = fromHttp<T>({ port: 0, path: '/feedback', onListening, ...options });
    const subscription = pipeline(rows).subscribe({ next: (value) => seen.push(value), error: reject });
    running.push(subscription);
  });
}

async function post(url: string, body: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(url, { method: 'POST', headers, body: text });
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    body: (await response.json()) as { accepted?: number; error?: string },
  };
}

/** A bounded operator that is full until the running value is told to end. */
function slow<T>() {
  const going: Subject<T>[] = [];
  const pipeline = (rows: Observable<T>) =>
    rows.pipe(
      concatMapAhead(
        (row) =>
          new Observable<T>((subscriber) => {
            subscriber.next(row);
            const end = new Subject<T>();
            going.push(end);
            return end.subscribe(subscriber);
          }),
        { ahead: 0 },
      ),
    );
  return { pipeline, going, finish: () => going.shift()!.complete() };
}

describe('fromHttp', () => {
  it('takes one object, an array of them and JSON lines, and answers 202 with their number', async () => {
    const { url, seen } = await start();
    expect(await post(url, { id: 1 })).toMatchObject({ status: 202, body: { accepted: 1 } });
    expect(await post(url, [{ id: 2 }, { id: 3 }])).toMatchObject({ status: 202, body: { accepted: 2 } });
    expect(await post(url, '{"id":4}\n\n{"id":5}\r\n')).toMatchObject({ status: 202, body: { accepted: 2 } });
    expect(await post(url, [])).toMatchObject({ status: 202, body: { accepted: 0 } });
    expect(seen).toStrictEqual([{ id: 1 }, { id: 2 }, { id: 3 }, { id: 4 }, { id: 5 }]);
  });

  it('listens on loopback when it is subscribed to, and for every subscriber again', async () => {
    const told: string[] = [];
    const rows = fromHttp({ port: 0, onListening: (url) => told.push(url) });
    expect(told).toStrictEqual([]);
    running.push(rows.subscribe(), rows.subscribe());
    await vi.waitFor(() => expect(told).toHaveLength(2));
    expect(new Set(told).size).toBe(2);
    for (const url of told) expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
  });

  it('closes the server when it is unsubscribed, also before it listens', async () => {
    const { url, subscription } = await start();
    await post(url, {});
    subscription.unsubscribe();
    await vi.waitFor(() => expect(post(url, {})).rejects.toThrow('fetch failed'));
    const port = Number(new URL(url).port);
    fromHttp({ port }).subscribe().unsubscribe();
    const again = await vi.waitFor(() => start({ port }));
    expect(again.url).toBe(url);
  });

  it('fails with a SourceError where the port is taken', async () => {
    const { url } = await start();
    await expect(start({ port: Number(new URL(url).port) })).rejects.toThrow(SourceError);
  });

  it('refuses settings that cannot be, at the call', () => {
    expect(() => fromHttp({ port: -1 })).toThrow(RangeError);
    expect(() => fromHttp({ port: 0, path: 'feedback' })).toThrow('path must begin with /');
    expect(() => fromHttp({ port: 0, host: '0.0.0.0' })).toThrow('key is needed to listen on 0.0.0.0');
    expect(() => fromHttp({ port: 0, key: 'short' })).toThrow('at least 8 characters');
    expect(() => fromHttp({ port: 0, maxBodyBytes: 0 })).toThrow(RangeError);
  });

  it.each([
    ['zod', z.object({ user: z.object({ rating: z.number() }) }), /^row 2: user\.rating: .*expected number/],
    ['io-ts', t.type({ user: t.type({ rating: t.number }) }), /^row 2: user\.rating: expected number$/],
    ['a function', toPreference, /^row 1: expected chosen and rejected/],
  ])(
    'checks rows with %s: a bad one is 400 with its place and what was expected, and none is taken',
    async (...row) => {
      const [, schema, message] = row;
      const { url, seen } = await start({ schema: schema as RowSchema<unknown> });
      const rows = [{ user: { rating: 1 } }, { user: { rating: 'secret' } }];
      const { status, body } = await post(url, rows);
      expect(status).toBe(400);
      expect(body.error).toMatch(message);
      expect(body.error).not.toContain('secret');
      expect(seen).toStrictEqual([]);
    },
  );

  it('hands on what the schema makes of a row, also where it takes its time', async () => {
    const schema = z.object({ at: z.string().transform(async (text) => Promise.resolve(text.length)) });
    const { url, seen } = await start<{ at: number }>({ schema });
    expect(await post(url, { at: 'four' })).toMatchObject({ status: 202 });
    expect(seen).toStrictEqual([{ at: 4 }]);
  });

  it('says what is wrong with a body', async () => {
    const { url, seen } = await start({ maxBodyBytes: 100 });
    expect(await post(url, '')).toMatchObject({
      status: 400,
      body: { error: 'expected JSON or JSON lines, and the body is empty' },
    });
    expect(await post(url, '{"a":1}\n{"a":')).toMatchObject({
      status: 400,
      body: { error: 'expected JSON or JSON lines, and line 2 is not JSON' },
    });
    expect(await post(url, [{}, 5])).toMatchObject({ status: 400, body: { error: 'row 2: expected an object' } });
    expect(await post(url, { text: 'x'.repeat(200) })).toMatchObject({
      status: 413,
      body: { error: 'the body is larger than 100 bytes' },
    });
    expect(seen).toStrictEqual([]);
    expect(await post(url, { small: true })).toMatchObject({ status: 202 });
  });

  it('takes no row of a body that was cut off', async () => {
    const { url, seen } = await start();
    const { port } = new URL(url);
    const socket = connect(Number(port), '127.0.0.1');
    socket.write('POST /feedback HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{"id":1}\n');
    await new Promise<void>((resolve) => socket.end(resolve));
    socket.destroy();
    expect(await post(url, { id: 2 })).toMatchObject({ status: 202 });
    expect(seen).toStrictEqual([{ id: 2 }]);
  });

  it('holds at most 64 bodies that are arriving, and answers them 503 when it is unsubscribed', async () => {
    const { url, seen, subscription } = await start();
    const { port } = new URL(url);
    const head = 'POST /feedback HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 8\r\n\r\n{"id"';
    const sockets = Array.from({ length: 64 }, () => {
      const socket = connect(Number(port), '127.0.0.1');
      socket.write(head);
      const answer = new Promise<string>((resolve) => {
        let text = '';
        socket.on('data', (part) => (text += String(part))).on('close', () => resolve(text));
      });
      return { socket, answer };
    });
    await vi.waitFor(async () => expect(await post(url, { id: 1 })).toMatchObject({ status: 503, retryAfter: '1' }));
    const before = seen.length;
    // One that is complete makes room for another.
    sockets[0]!.socket.write(':2}');
    await vi.waitFor(async () => expect(await post(url, { id: 3 })).toMatchObject({ status: 202 }));
    expect(seen.slice(before)).toStrictEqual([{ id: 2 }, { id: 3 }]);
    subscription.unsubscribe();
    const answers = await Promise.all(sockets.map(({ answer }) => answer));
    expect(answers[0]).toMatch(/^HTTP\/1\.1 202 /);
    for (const answer of answers.slice(1)) expect(answer).toMatch(/^HTTP\/1\.1 503 [^]*the stream has ended/);
  });

  it('refuses a body of unknown size as soon as it is too large', async () => {
    const { url, seen } = await start({ maxBodyBytes: 1000 });
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(600).fill(32)),
    });
    const sent = fetch(url, { method: 'POST', body, duplex: 'half' });
    // A client that is still sending may see the connection cut before it reads the answer.
    expect([413, 'cut']).toContain(
      await sent.then(
        ({ status }) => status,
        () => 'cut',
      ),
    );
    expect(seen).toStrictEqual([]);
    expect(await post(url, {})).toMatchObject({ status: 202 });
  });

  it('asks for the key where there is one, and tells it to nobody', async () => {
    const key = 'a key of the product';
    const { url, seen } = await start({ key });
    for (const headers of [{}, { authorization: 'Bearer wrong' }] as Record<string, string>[]) {
      const { status, body } = await post(url, { id: 1 }, headers);
      expect(status).toBe(401);
      expect(JSON.stringify(body)).not.toContain(key);
    }
    expect(await post(url, { id: 1 }, { authorization: `Bearer ${key}` })).toMatchObject({ status: 202 });
    expect(seen).toHaveLength(1);
  });

  it('refuses other paths and methods, and pages of other sites', async () => {
    const { url, seen } = await start();
    expect(await post(url.replace('feedback', 'other'), {})).toMatchObject({ status: 404 });
    const asked = await fetch(url);
    expect([asked.status, asked.headers.get('allow')]).toStrictEqual([405, 'POST']);
    expect(await post(url, {}, { origin: 'https://example.org' })).toMatchObject({ status: 403 });
    expect(seen).toStrictEqual([]);
    const open = await start({ allowedHosts: ['example.org'] });
    expect(await post(open.url, {}, { origin: 'https://example.org' })).toMatchObject({ status: 202 });
  });

  it('answers 503 with retry-after while the bounded operator downstream is full, and 202 when it has room', async () => {
    const { pipeline, going, finish } = slow<{ id: number }>();
    const { url, seen } = await start<{ id: number }>({ retryAfterSeconds: 7 }, pipeline);
    expect(await post(url, { id: 1 })).toMatchObject({ status: 202 });
    expect(going).toHaveLength(1);
    expect(await post(url, { id: 2 })).toMatchObject({ status: 503, retryAfter: '7' });
    finish();
    expect(await post(url, { id: 3 })).toMatchObject({ status: 202 });
    expect(seen).toStrictEqual([{ id: 1 }, { id: 3 }]);
  });

  it('answers a body that fills the pipeline when its last row is handed on, and others 503 meanwhile', async () => {
    const { pipeline, going, finish } = slow<{ id: number }>();
    const { url, seen } = await start<{ id: number }>({}, pipeline);
    let answered = false;
    const whole = post(url, [{ id: 1 }, { id: 2 }, { id: 3 }]).finally(() => (answered = true));
    await vi.waitFor(() => expect(going).toHaveLength(1));
    expect(await post(url, { id: 9 })).toMatchObject({ status: 503 });
    finish();
    expect(await post(url, { id: 9 })).toMatchObject({ status: 503 });
    expect(answered).toBe(false);
    finish();
    expect(await whole).toMatchObject({ status: 202, body: { accepted: 3 } });
    expect(seen).toStrictEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
  });

  it('says how many rows of a body were handed on when the stream ends in the middle of it', async () => {
    const { pipeline, going, finish } = slow<{ id: number }>();
    const { url, seen, subscription } = await start<{ id: number }>({}, pipeline);
    const whole = post(url, [{ id: 1 }, { id: 2 }, { id: 3 }]);
    await vi.waitFor(() => expect(going).toHaveLength(1));
    finish();
    expect(seen).toHaveLength(2);
    subscription.unsubscribe();
    expect(await whole).toMatchObject({ status: 503, body: { accepted: 2, error: 'the stream has ended' } });
  });

  it('answers 202 for the row with which the subscriber has enough', async () => {
    const { url, seen } = await start<{ id: number }>({}, (rows) => rows.pipe(take(2)));
    expect(await post(url, { id: 1 })).toMatchObject({ status: 202 });
    expect(await post(url, { id: 2 })).toMatchObject({ status: 202 });
    expect(seen).toHaveLength(2);
    await vi.waitFor(() => expect(post(url, { id: 3 })).rejects.toThrow('fetch failed'));
  });

  it('does not answer 202 for rows behind one on which the pipeline failed', async () => {
    const failures: unknown[] = [];
    const { url } = await new Promise<{ url: string }>((resolve) => {
      const subscription = fromHttp({ port: 0, onListening: (bound) => resolve({ url: bound }) })
        .pipe(
          map((row) => {
            if (row['bad'] === true) throw new Error('cannot be trained on');
            return row;
          }),
        )
        .subscribe({ error: (error) => failures.push(error) });
      running.push(subscription);
    });
    expect(await post(url, [{}, { bad: true }, {}])).toMatchObject({ status: 503, body: { accepted: 2 } });
    expect(failures).toStrictEqual([new Error('cannot be trained on')]);
  });

  it('has rows on disk when they are answered 202, behind toJsonl', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'feedback-'));
    const file = join(folder, 'rows.jsonl');
    const { url } = await start({}, (rows) => rows.pipe(toJsonl(file)));
    expect(await post(url, [{ id: 1 }, { id: 2 }])).toMatchObject({ status: 202 });
    expect(readFileSync(file, 'utf8')).toBe('{"id":1}\n{"id":2}\n');
    rmSync(folder, { recursive: true });
  });

  it('tells backpressure$ whether it found a gate', async () => {
    const events: unknown[] = [];
    running.push(backpressure$.subscribe((event) => events.push(event)));
    await start({}, slow<unknown>().pipeline);
    expect(events).toContainEqual({ type: 'source-opened', source: 'fromHttp', gated: true });
  });

  it('any clients, bodies and pace: what is answered 202 comes out once and in order, what is refused never', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }), {
          minLength: 1,
          maxLength: 6,
        }),
        async (clients) => {
          const { pipeline, going, finish } = slow<string>();
          const { url, seen, subscription } = await start<string>({ schema: t.string }, pipeline);
          const accepted: string[][] = [];
          const refused: string[][] = [];
          let active = clients.length;
          const work = clients.map(async (bodies, client) => {
            for (const [body, size] of bodies.entries()) {
              const rows = Array.from({ length: size }, (_, row) => `${client}.${body}.${row}`);
              const { status } = await post(url, rows);
              (status === 202 ? accepted : refused).push(rows);
            }
            active--;
          });
          // Rows end one by one, for as long as anybody posts.
          while (active > 0) {
            if (going.length > 0) finish();
            await new Promise((resolve) => setImmediate(resolve));
          }
          await Promise.all(work);
          subscription.unsubscribe();
          expect([...seen].sort()).toStrictEqual(accepted.flat().sort());
          for (const rows of accepted) expect(seen.join(' ')).toContain(rows.join(' '));
          for (const rows of refused) for (const row of rows) expect(seen).not.toContain(row);
        },
      ),
      { numRuns: 20 },
    );
  });
});
