import type { IncomingMessage } from 'node:http';
import { connect as connectSocket } from 'node:net';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import { readBody, type ReadBody } from '../../src/local/http/body.js';
import { ByteBudget } from '../../src/local/http/byteBudget.js';
import { closeAfterEach, sampleBody, start } from './localFixture.js';

closeAfterEach();

/** Sends bytes as they are and gives all that comes back until the connection is closed. */
function raw(url: string, text: string): Promise<string> {
  const { port, hostname } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connectSocket(Number(port), hostname, () => socket.write(text));
    let received = '';
    socket.on('data', (bytes) => (received += bytes.toString()));
    socket.on('error', reject);
    socket.on('close', () => resolve(received));
  });
}

describe('the embedded service', () => {
  it('answers GET // and other strange paths with 404 or 400, not with 500', async () => {
    const { local } = await start();
    const statusOf = async (path: string) => {
      const answer = await raw(local.url, `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n`);
      return Number(answer.split(' ')[1]);
    };
    expect(await statusOf('//')).toBe(404);
    expect(await statusOf('//[')).toBe(404);
    expect(await statusOf('///api/v1/healthz')).toBe(404);
    expect(await statusOf('http://[')).toBe(400);
    expect(await statusOf('/api/v1/%')).toBe(401);
  });

  it('refuses 4e7 samples before anything is made for each of them', async () => {
    const { caller, engine } = await start();
    const session = await caller.createSession();
    const { sampling_session_id: id } = await caller.post('create_sampling_session', {
      session_id: session,
      sampling_session_seq_id: 0,
      base_model: 'fake/model',
    });
    for (const numSamples of [65_537, 3e6, 4e7]) {
      const body = sampleBody({ sampling_session_id: id, seq_id: 1, num_samples: numSamples });
      const response = await caller.send('asample', body);
      expect([response.status, await response.json()]).toEqual([400, { detail: 'num_samples must be at most 65536' }]);
    }
    expect(engine.log.filter((line) => line.startsWith('sample'))).toEqual([]);
  });

  it('refuses megabytes of [ before they are parsed', async () => {
    const { caller } = await start();
    const send = (body: string) =>
      caller.fetch('create_session', { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    const deep = await send('['.repeat(2 ** 20));
    expect([deep.status, await deep.text()]).toEqual([422, expect.stringContaining('nested deeper than 128 levels')]);
    const objects = await send('{"a":'.repeat(2 ** 18));
    expect([objects.status, await objects.text()]).toEqual([422, expect.stringContaining('nested deeper')]);
    // Brackets in text are text.
    const tags = [`${'['.repeat(200_000)}\\"${'{'.repeat(1000)}`];
    expect((await send(JSON.stringify({ tags, sdk_version: 'test' }))).status).toBe(200);
  });

  it('holds a few bodies that unpack to the limit at once, not all of fifty; small ones never wait', async () => {
    const limit = 2 ** 20;
    const budget = new ByteBudget(4 * limit);
    const request = (body: Buffer, headers: object) =>
      Object.assign(Readable.from([body]), {
        headers: { 'content-length': String(body.length), ...headers },
      }) as unknown as IncomingMessage;
    const bomb = gzipSync(Buffer.alloc(limit, ' '));
    const held: ReadBody[] = [];
    const all = Array.from({ length: 50 }, () =>
      readBody(request(bomb, { 'content-encoding': 'gzip' }), limit, budget).then((body) => held.push(body)),
    );
    const small = await readBody(request(Buffer.from('{}'), {}), limit, budget);
    expect(small.bytes.toString()).toBe('{}');
    for (let seen = 0; seen < 50; seen += 4) {
      const atMost = Math.min(seen + 4, 50);
      await expect.poll(() => held.length).toBe(atMost);
      // Time for one more to slip through.
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(held).toHaveLength(atMost);
      expect(held.at(-1)!.bytes.length).toBe(limit);
      for (const { release } of held.slice(seen, atMost)) release();
    }
    await Promise.all(all);
  });

  it('answers fifty such bodies with their refusals', async () => {
    const { caller } = await start({ maxRequestBytes: 2 ** 18 });
    const bomb = gzipSync(Buffer.alloc(2 ** 18, ' '));
    const tooLarge = gzipSync(Buffer.alloc(2 ** 18 + 1, ' '));
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        caller.fetch('create_session', { method: 'POST', body: index % 2 === 0 ? bomb : tooLarge, headers }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map((_, index) => (index % 2 === 0 ? 422 : 413)));
  });

  it('cuts a body that never arrives, and at once where there is no key', async () => {
    const { local } = await start({ requestTimeoutMs: 200 });
    const head = (key: string) =>
      `POST /api/v1/create_session HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: ${key}\r\ncontent-length: 1000\r\n\r\n{`;
    expect(await raw(local.url, head(local.apiKey))).toMatch(/^HTTP\/1\.1 408 /);
    const refused = await raw(local.url, head('tml-wrong'));
    expect(refused).toMatch(/^HTTP\/1\.1 401 /);
    expect(refused).toMatch(/connection: close/i);
  });

  it('cuts the connection of a refused body without a limit too', async () => {
    const { local } = await start({ requestTimeoutMs: 0 });
    const head = `POST /api/v1/create_session HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000\r\n\r\n{`;
    expect(await raw(local.url, head)).toMatch(/^HTTP\/1\.1 401 /);
  });

  it('survives a client that goes away while its body, of no stated length, grows over the limit', async () => {
    const { local, caller } = await start({ maxRequestBytes: 1024 });
    const { port, hostname } = new URL(local.url);
    const later = vi.spyOn(globalThis, 'setTimeout');
    const head = `POST /api/v1/create_session HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: ${local.apiKey}\r\ntransfer-encoding: chunked\r\n\r\n`;
    const chunk = `1000\r\n${'x'.repeat(4096)}\r\n`;
    await Promise.all(
      Array.from(
        { length: 20 },
        () =>
          new Promise<void>((resolve) => {
            const socket = connectSocket(Number(port), hostname, () => {
              socket.write(head + chunk, () => socket.destroy());
            });
            socket.on('error', () => {});
            socket.on('close', () => resolve());
          }),
      ),
    );
    // The refusals are cut half a second later; this does so now, without waiting.
    const cuts = await vi.waitFor(() => {
      const found = later.mock.calls.filter(([, delayMs]) => delayMs === 500);
      expect(found).toHaveLength(20);
      return found;
    }, 240_000);
    later.mockRestore();
    expect(() => cuts.forEach(([cut]) => cut())).not.toThrow();
    expect((await caller.fetch('healthz')).status).toBe(200);
  });

  it('says in healthz that its engine is dead', async () => {
    const { caller, engine } = await start();
    engine.failure = new Error('the engine’s thread has ended: start the service again');
    const response = await caller.fetch('healthz');
    expect([response.status, await response.json()]).toEqual([
      503,
      { detail: 'the engine’s thread has ended: start the service again' },
    ]);
  });
});

describe('ByteBudget', () => {
  it('lets in what fits, in the order of asking, and more than there is alone', async () => {
    const budget = new ByteBudget(10);
    const log: string[] = [];
    const take = (name: string, bytes: number) =>
      budget.take(bytes).then((release) => {
        log.push(name);
        return release;
      });
    const settle = () => new Promise((resolve) => setImmediate(resolve));
    const a = await take('a', 6);
    const whole = take('whole', 100);
    const small = take('small', 1);
    await settle();
    expect(log).toEqual(['a']);
    a();
    a();
    const release = await whole;
    await settle();
    expect(log).toEqual(['a', 'whole']);
    release();
    await small;
    expect(log).toEqual(['a', 'whole', 'small']);
  });
});
