/** What servers of HTTP/2 do to a client: they give up in the middle, stop, change and close. Each of these once broke a client. */
import { constants, type ServerHttp2Session } from 'node:http2';
import { firstValueFrom } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { ServiceClient, type TinkerEvent } from 'tinker-rx';
import { resolveBaseUrl } from '../../src/transport/baseUrl.js';
import type { TransportFailure, TransportRequest, TransportResponse } from '../../src/transport/Transport.js';
import {
  socketTransport,
  type SocketTransport,
  type SocketTransportOptions,
} from '../../src/transport/socketTransport.js';
import { certificate, FakeService, inTurn, reply, type Answer } from './support/fakeService.js';
import { hurry } from './support/hurry.js';
import { DATA, END_STREAM, frame, ok, rawHttp2, RST_STREAM } from './support/rawHttp2.js';
import { passTo, TcpSwitch } from './support/tcpSwitch.js';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});
const closing = <A extends { close(): unknown }>(one: A): A => {
  open.push(() => one.close());
  return one;
};

let sockets: SocketTransport;
function connect(url: string, options: Partial<SocketTransportOptions> = {}): void {
  sockets = socketTransport({
    baseUrl: resolveBaseUrl(url, undefined),
    environment: {},
    tls: { ca: certificate() },
    ...options,
  });
  open.push(() => sockets.destroy());
}
const request: TransportRequest = {
  method: 'POST',
  path: '/api/v1/x',
  lane: 'training',
  headers: {},
  body: '{}',
  timeoutMs: 20_000,
};
const ask = (): Promise<TransportResponse> => firstValueFrom(sockets.transport(request));
const failing = (): Promise<TransportFailure> =>
  ask().then(
    () => Promise.reject(new Error('was answered')),
    (error: unknown) => error as TransportFailure,
  );
async function failuresBeforeAnswer(): Promise<number> {
  let failures = 0;
  while (failures < 10) {
    try {
      await ask();
      break;
    } catch {
      failures++;
    }
  }
  return failures;
}
const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2));
};

describe('a TLS connection that is reset in its handshake, after everyone who waited for it has gone', () => {
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);

  it.each(['the first connection', 'a later connection'])('does not end the process: %s', async (which) => {
    const fake = closing(await FakeService.startHttp2({ x: reply({}) }));
    const tcp = closing(await TcpSwitch.start(passTo(fake.url)));
    connect(tcp.url);
    if (which === 'a later connection') await ask();
    process.on('uncaughtException', note);
    open.push(() => process.off('uncaughtException', note));
    tcp.turnTo(() => undefined);
    await until(() => tcp.sockets.size === 0);
    const waiting = Array.from({ length: 3 }, () => sockets.transport(request).subscribe({ error: () => undefined }));
    await until(() => tcp.sockets.size === 1);
    for (const one of waiting) one.unsubscribe();
    for (const socket of tcp.sockets) socket.resetAndDestroy();
    tcp.behave = passTo(fake.url);
    // The next connection succeeds, or fails with what became of the last.
    await ask().catch(() => ask());
    expect(uncaught).toEqual([]);
  });
});

it('a handshake that nobody answers is late', async () => {
  const tcp = closing(await TcpSwitch.start((socket) => void socket.resume()));
  connect(tcp.url, { connectTimeoutMs: 100 });
  expect(await failing()).toMatchObject({ kind: 'timeout', message: 'no connection within 0.1 s' });
  await until(() => tcp.sockets.size === 0);
});

describe('a stream that ends with RST_STREAM(NO_ERROR)', () => {
  const reset = (stream: number): Buffer => frame(RST_STREAM, 0, stream, Buffer.alloc(4));

  it.each([
    ['whose length is not reached', 10],
    ['of unknown length', undefined],
  ])('before its end is a failure, not a shorter answer: an answer %s', async (_, length) => {
    const half = (stream: number) =>
      Buffer.concat([ok(stream, length), frame(DATA, 0, stream, 'hello'), reset(stream)]);
    connect(closing(await rawHttp2(half)).url);
    expect((await failing()).kind).toBe('connection');
  });

  it('after its end is an answer: the server only does not want the rest of the request', async () => {
    const whole = (stream: number) =>
      Buffer.concat([ok(stream), frame(DATA, END_STREAM, stream, 'hello'), reset(stream)]);
    connect(closing(await rawHttp2(whole)).url);
    expect(Buffer.from((await ask()).body).toString()).toBe('hello');
  });

  it('is not needed: an answer may be headers alone', async () => {
    const bare = (stream: number): Buffer => {
      const head = ok(stream);
      head[4]! |= END_STREAM;
      return head;
    };
    connect(closing(await rawHttp2(bare)).url);
    expect(await ask()).toMatchObject({ status: 200, body: Buffer.alloc(0) });
  });

  it('makes a client ask again', async () => {
    const answers = [
      (stream: number) => Buffer.concat([ok(stream, 30), frame(DATA, 0, stream, '{"request_id":'), reset(stream)]),
      (stream: number) => Buffer.concat([ok(stream), frame(DATA, END_STREAM, stream, '{"supported_models":[]}')]),
    ];
    const config = (stream: number) => Buffer.concat([ok(stream), frame(DATA, END_STREAM, stream, '{}')]);
    connect(closing(await rawHttp2((stream) => [config, ...answers][(asked += 1)]!(stream))).url);
    let asked = -1;
    const service = new ServiceClient({
      ...{ baseUrl: 'https://localhost', apiKey: 'tml-x', telemetry: false, logLevel: 'silent', scheduler: hurry(100) },
      transport: sockets.transport,
    });
    open.push(() => service.destroy());
    expect(await service.getServerCapabilities()).toMatchObject({ supportedModels: [] });
    expect(asked).toBe(2);
  });
});

describe('a server that changes its protocol', () => {
  it('from HTTP/1.1 to HTTP/2 alone is asked again which it speaks', async () => {
    const before = closing(await FakeService.startHttps({ x: reply({}) }));
    const after = closing(await FakeService.startHttp2({ x: reply({}) }, {}, { allowHTTP1: false }));
    const tcp = closing(await TcpSwitch.start(passTo(before.url)));
    connect(tcp.url);
    await Promise.all([ask(), ask()]);
    tcp.turnTo(passTo(after.url));
    await until(() => tcp.sockets.size === 0);
    // One may go to the old connection, the next learns of the change.
    expect(await failuresBeforeAnswer()).toBeLessThanOrEqual(2);
    const answers = await Promise.all(Array.from({ length: 10 }, ask));
    expect(answers.map(({ status }) => status)).toEqual(new Array(10).fill(200));
    expect(after.hits[0]!.headers[':method']).toBe('POST');
  });

  it('from HTTP/2 to HTTP/1.1 alone is asked again which it speaks', async () => {
    const before = closing(await FakeService.startHttp2({ x: reply({}) }));
    const after = closing(await FakeService.startHttps({ x: reply({}) }));
    const tcp = closing(await TcpSwitch.start(passTo(before.url)));
    connect(tcp.url);
    await Promise.all([ask(), ask()]);
    tcp.turnTo(passTo(after.url));
    await until(() => tcp.sockets.size === 0);
    // One may go to the old connection, the next learns of the change.
    expect(await failuresBeforeAnswer()).toBeLessThanOrEqual(2);
    const answers = await Promise.all(Array.from({ length: 10 }, ask));
    expect(answers.map(({ status }) => status)).toEqual(new Array(10).fill(200));
    expect(after.hits[0]!.headers[':method']).toBeUndefined();
  });
});

describe('a connection that has answered, and is closed before any byte of the next answer', () => {
  const hangUp =
    (fake: () => FakeService): Answer =>
    () => {
      for (const session of fake().sessions) session.destroy();
    };

  it('is a reset; one that has never answered is not', async () => {
    const fake: FakeService = closing(
      await FakeService.startHttp2({
        x: inTurn(
          hangUp(() => fake),
          reply({}),
          hangUp(() => fake),
        ),
      }),
    );
    connect(fake.url);
    expect((await failing()).kind).toBe('connection');
    await ask();
    expect((await failing()).kind).toBe('reset');
  });

  it('has a submission sent again at once, under the same key and number', async () => {
    const fake: FakeService = closing(
      await FakeService.startHttp2({
        retrieve_future: inTurn(reply({ model_id: 'model' }), reply({ metrics: {} })),
        optim_step: inTurn(
          reply({ request_id: 'one' }),
          hangUp(() => fake),
          reply({ request_id: 'two' }),
        ),
      }),
    );
    connect(fake.url);
    const service = new ServiceClient({
      ...{ baseUrl: fake.url, apiKey: 'tml-x', telemetry: false, logLevel: 'silent', scheduler: hurry(20) },
      transport: sockets.transport,
    });
    open.push(() => service.destroy());
    const events: TinkerEvent[] = [];
    service.events$.subscribe((event) => events.push(event));
    const model = await service.createLoraTrainingClient({ baseModel: 'm' });
    await model.optimStep();
    await model.optimStep();
    const [, ...second] = fake.hitsOf('optim_step');
    expect(second.map(({ json }) => json['seq_id'])).toStrictEqual([2, 2]);
    expect(new Set(second.map(({ headers }) => headers['x-idempotency-key'])).size).toBe(1);
    const retries = events.filter((event) => event.type === 'request-retry' && event.path === 'optim_step');
    expect(retries).toMatchObject([{ attempt: 1, delayMs: 0 }]);
  });

  it('has many requests sent again at once: none goes to the connection that is gone', async () => {
    const held: (() => void)[] = [];
    const fake = closing(
      await FakeService.startHttp2({ x: (...seen) => void held.push(() => reply({})(...seen)), y: reply({}) }),
    );
    connect(fake.url);
    await firstValueFrom(sockets.transport({ ...request, path: '/api/v1/y' }));
    const again = (): Promise<TransportResponse> =>
      ask().catch((error: TransportFailure) => (error.kind === 'reset' ? again() : Promise.reject(error)));
    const answers = Array.from({ length: 50 }, again);
    await until(() => held.length === 50);
    for (const session of fake.sessions) session.destroy();
    await until(() => held.length === 100);
    for (const letGo of held.slice(50)) letGo();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(new Array(50).fill(200));
    expect(fake.opened).toBe(2);
  });
});

describe('requests that wait for room on a connection', () => {
  const each =
    (end: (session: ServerHttp2Session) => void) =>
    ({ sessions }: FakeService): void =>
      sessions.forEach(end);
  const ends: readonly (readonly [string, (fake: FakeService) => void])[] = [
    ['is closed', each((session) => session.destroy())],
    ['ends with an error', each((session) => session.goaway(constants.NGHTTP2_INTERNAL_ERROR))],
    ['has no more use', each((session) => session.goaway(constants.NGHTTP2_NO_ERROR))],
    ['is cut', ({ sockets: cut }) => cut.forEach((socket) => socket.destroy())],
  ];
  it.each(ends)('go to another when it %s', async (_, end) => {
    const held: (() => void)[] = [];
    let isHolding = true;
    const answer: Answer = (...seen) => {
      if (isHolding) held.push(() => reply({})(...seen));
      else reply({})(...seen);
    };
    const fake = closing(await FakeService.startHttp2({ x: answer }, { maxConcurrentStreams: 2 }));
    connect(fake.url, { connections: { training: 1 } });
    const outcomes = Array.from({ length: 12 }, () =>
      ask().then(
        () => 'answered',
        ({ kind }: TransportFailure) => kind,
      ),
    );
    await until(() => held.length === 2);
    isHolding = false;
    end(fake);
    for (const letGo of held) letGo();
    const ended = await Promise.all(outcomes);
    // Two were on it, and two more may have been sent on it in its last moment.
    expect(ended.filter((outcome) => outcome === 'answered').length).toBeGreaterThanOrEqual(8);
    for (const outcome of ended) expect(['answered', 'connection', 'reset']).toContain(outcome);
  });
});
