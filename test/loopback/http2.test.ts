import { asyncScheduler, firstValueFrom } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { ModelInput, ServiceClient, type ServiceClientOptions } from 'tinker-rx';
import { resolveBaseUrl } from '../../src/transport/baseUrl.js';
import type { TransportFailure, TransportRequest, TransportResponse } from '../../src/transport/Transport.js';
import { socketTransport, type SocketTransport } from '../../src/transport/socketTransport.js';
import { withTimeout } from '../../src/transport/withTimeout.js';
import { certificate, FakeService, inTurn, reply, type Answer } from './support/fakeService.js';
import { hurry } from './support/hurry.js';

let fake: FakeService;
let sockets: SocketTransport;
let service: ServiceClient | undefined;

function connect(tls: { ca?: Buffer } = { ca: certificate() }): void {
  sockets = socketTransport({ baseUrl: resolveBaseUrl(fake.url, undefined), environment: {}, tls });
}
function client(options: ServiceClientOptions = {}): ServiceClient {
  service = new ServiceClient({
    baseUrl: fake.url,
    apiKey: 'tml-loopback',
    telemetry: false,
    logLevel: 'silent',
    scheduler: hurry(20),
    transport: sockets.transport,
    ...options,
  });
  return service;
}
async function start(answers: Record<string, Answer>, settings = {}): Promise<void> {
  fake = await FakeService.startHttp2(answers, settings);
  connect();
}
afterEach(async () => {
  await service?.destroy();
  service = undefined;
  await sockets.destroy();
  await fake.close();
});

const ask = (request: Partial<TransportRequest> = {}): Promise<TransportResponse> =>
  firstValueFrom(
    withTimeout(
      sockets.transport,
      asyncScheduler,
    )({
      method: 'POST',
      path: '/api/v1/x',
      lane: 'polls',
      headers: { 'content-type': 'application/json' },
      body: '{}',
      timeoutMs: 20_000,
      ...request,
    }),
  );
const failing = (request: Partial<TransportRequest> = {}): Promise<TransportFailure> =>
  ask(request).then(
    () => Promise.reject(new Error('was answered')),
    (error: unknown) => error as TransportFailure,
  );
const many = (count: number): Promise<TransportResponse>[] => Array.from({ length: count }, () => ask());
const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await pause(5);
};
/** Keeps requests until they are let go. */
function held(): { readonly answer: Answer; readonly letGo: () => void; readonly count: () => number } {
  const waiting: (() => void)[] = [];
  return {
    answer: (...seen) => void waiting.push(() => reply({ done: true })(...seen)),
    letGo: () => waiting.splice(0).forEach((go) => go()),
    count: () => waiting.length,
  };
}

describe('over TLS with HTTP/2', () => {
  it.each([
    ['as many streams as one likes', {}, 3],
    ['a hundred streams a connection', { maxConcurrentStreams: 100 }, 7],
  ])(
    '300 waiting samples used 430 connections: a server that takes %s gets at most %3$i',
    async (_, settings, most) => {
      const polls = held();
      let n = 0;
      await start(
        {
          asample: (...seen) => reply({ request_id: `r${n++}`, sample_sequence_ids: ['a'] })(...seen),
          retrieve_future: polls.answer,
        },
        settings,
      );
      const sampler = await client().createSamplingClient({ baseModel: 'm' });
      const prompt = ModelInput.fromInts([1, 2, 3]);
      const samples = Array.from({ length: 300 }, () => sampler.sample({ prompt, samplingParams: { maxTokens: 1 } }));
      await until(() => polls.count() === 300);
      expect(fake.opened).toBeLessThanOrEqual(most);
      expect(fake.sessions.size).toBe(fake.opened);
      for (const sample of samples) sample.cancel();
    },
    60_000,
  );

  it('carries bodies of megabytes both ways, whole', async () => {
    const answer: Answer = (response, { body }) => response.writeHead(200).end(body);
    await start({ x: answer });
    const body = Uint8Array.from({ length: 9_000_001 }, (_, index) => index % 251);
    const { status, body: back } = await ask({ body, headers: {} });
    expect(status).toBe(200);
    expect(Buffer.from(back).equals(body)).toBe(true);
    expect(fake.opened).toBe(1);
  });

  it('shows the same headers as HTTP/1.1 does, and sends a query and a GET', async () => {
    await start({ 'y?a=1': reply({ ok: 1 }, 202, { 'x-request-id': 'r', 'retry-after': '3' }) });
    const { body: _, ...get } = { method: 'GET', path: '/api/v1/y?a=1', headers: { 'x-a': 'b' }, body: '' } as const;
    const response = await firstValueFrom(sockets.transport({ ...get, lane: 'rest', timeoutMs: 20_000 }));
    expect(response).toMatchObject({ status: 202, headers: { 'x-request-id': 'r', 'retry-after': '3' } });
    expect(Object.keys(response.headers).filter((name) => name.startsWith(':'))).toEqual([]);
    expect(fake.hits[0]!.headers).toMatchObject({ ':method': 'GET', 'x-a': 'b' });
  });

  it('a cancelled request closes its stream, and the connection serves the next', async () => {
    let closed = 0;
    await start({ x: (response) => response.on('close', () => closed++), y: reply({}) });
    const waiting = sockets.transport({
      method: 'POST',
      path: '/api/v1/x',
      lane: 'polls',
      headers: {},
      body: '{}',
      timeoutMs: 20_000,
    });
    const subscription = waiting.subscribe();
    await until(() => fake.hits.length === 1);
    subscription.unsubscribe();
    await until(() => closed === 1);
    expect((await ask({ path: '/api/v1/y' })).status).toBe(200);
    expect(fake.opened).toBe(1);
  });

  it('an answer that does not come is late, and its connection serves the next request once the server has answered a ping', async () => {
    await start({ x: () => {}, y: reply({}) });
    expect(await failing({ timeoutMs: 200 })).toMatchObject({ kind: 'timeout', message: 'no answer within 0.2 s' });
    expect((await ask({ path: '/api/v1/y' })).status).toBe(200);
    expect(fake.opened).toBe(1);
  });

  it('an answer that trickles is late', async () => {
    const drip: Answer = (response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write('x'), 20);
      response.on('close', () => clearInterval(timer));
    };
    await start({ x: drip });
    expect(await failing({ timeoutMs: 200 })).toMatchObject({
      kind: 'timeout',
      message: 'no answer within 0.2 s',
    });
  });

  it('an upload that does not move is late', async () => {
    // A window of nothing, which never opens: no byte of a body can leave.
    await start({}, { initialWindowSize: 0 });
    expect(await failing({ body: new Uint8Array(60_000), timeoutMs: 300 })).toMatchObject({
      kind: 'timeout',
      message: 'no answer within 0.3 s',
    });
  });

  it('what is in flight when the server asks for a new connection finishes on the old one', async () => {
    const polls = held();
    await start({ x: polls.answer });
    const first = many(50);
    await until(() => polls.count() === 50);
    for (const session of fake.sessions) session.goaway(0);
    await pause(50);
    const second = many(10);
    await until(() => polls.count() === 60);
    polls.letGo();
    const answers = await Promise.all([...first, ...second]);
    expect(answers.map(({ status }) => status)).toEqual(new Array(60).fill(200));
    expect(fake.opened).toBe(2);
    expect(fake.hits).toHaveLength(60);
  });

  it('a server that hangs up fails what was in flight, once each, and the next request connects anew', async () => {
    await start({ x: () => {}, y: reply({}) });
    const waiting = Array.from({ length: 20 }, () => failing());
    await until(() => fake.hits.length === 20);
    for (const session of fake.sessions) session.destroy();
    for (const failure of await Promise.all(waiting)) expect(failure.kind).toBe('connection');
    expect((await ask({ path: '/api/v1/y' })).status).toBe(200);
    expect(fake.hits).toHaveLength(21);
  });

  it('an answer that is reset in the middle is a failure, not a shorter answer', async () => {
    const half: Answer = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"request_id":', () =>
        (response as never as { stream: { close: (code: number) => void } }).stream.close(8),
      );
    };
    await start({ x: half });
    expect((await failing()).kind).toBe('connection');
  });

  it('a stream that the server refuses unread goes out again at once', async () => {
    const refuse: Answer = (response) =>
      (response as never as { stream: { close: (code: number) => void } }).stream.close(7);
    await start({ x: inTurn(refuse, refuse, reply({ ok: 1 })) });
    expect((await ask()).status).toBe(200);
    expect(fake.hits).toHaveLength(3);
  });

  it('a submission survives a lost connection under the same key and number', async () => {
    const hangUp: Answer = () => fake.sessions.forEach((session) => session.destroy());
    await start({
      retrieve_future: inTurn(reply({ model_id: 'model' }), reply({ metrics: {} })),
      optim_step: inTurn(hangUp, hangUp, reply({ request_id: 'step' })),
    });
    const model = await client().createLoraTrainingClient({ baseModel: 'm' });
    await model.optimStep();
    const hits = fake.hitsOf('optim_step');
    expect(hits.map(({ json }) => json['seq_id'])).toStrictEqual([1, 1, 1]);
    expect(new Set(hits.map(({ headers }) => headers['x-idempotency-key'])).size).toBe(1);
  });

  it('close waits for what is in flight and leaves no connection', async () => {
    const polls = held();
    await start({ x: polls.answer });
    const waiting = many(5);
    await until(() => polls.count() === 5);
    const closing = sockets.close();
    polls.letGo();
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    await closing;
    await until(() => fake.sockets.size === 0);
  });

  it('closing twice ends both as soon as nothing is in flight', async () => {
    const polls = held();
    await start({ x: polls.answer });
    const waiting = many(2);
    await until(() => polls.count() === 2);
    const first = sockets.close().then(() => 'closed');
    const second = sockets.close();
    polls.letGo();
    await Promise.all([...waiting, second]);
    const later = new Promise((resolve) => setImmediate(resolve)).then(() => 'still waits');
    expect(await Promise.race([first, later])).toBe('closed');
  });

  it('destroying does not wait for what closing waits for', async () => {
    const polls = held();
    await start({ x: polls.answer });
    const failures = many(5).map((answer) => expect(answer).rejects.toMatchObject({ kind: 'connection' }));
    await until(() => polls.count() === 5);
    const closing = sockets.close();
    await new Promise((resolve) => setImmediate(resolve));
    await sockets.destroy();
    await Promise.all([...failures, closing]);
    await until(() => fake.sockets.size === 0);
  });

  it('a request that cannot be sent as it is fails at once', async () => {
    await start({ x: reply({}) });
    expect((await failing({ headers: { 'x-a': 'en – dash' } })).kind).toBe('request');
    expect((await ask()).status).toBe(200);
  });
});

describe('over TLS without HTTP/2', () => {
  it('HTTP/1.1 does it', async () => {
    fake = await FakeService.startHttps({ x: reply({ ok: 1 }) });
    connect();
    expect((await Promise.all(many(20))).map(({ status }) => status)).toEqual(new Array(20).fill(200));
    expect(fake.sessions.size).toBe(0);
    expect(fake.hits[0]!.headers[':method']).toBeUndefined();
  });
});

it('a certificate that nobody trusts is an error at once, not after five minutes', async () => {
  fake = await FakeService.startHttp2({});
  connect({});
  expect((await failing()).kind).toBe('untrusted');
  const failure = await client({ scheduler: hurry(1) })
    .getServerCapabilities()
    .either();
  expect(failure).toMatchObject({ _tag: 'Left', left: { code: 'connection', retryable: false } });
});

it('a server that hangs up before it says anything fails what waits', async () => {
  await start({});
  fake.onSession((session) => session.destroy());
  const failures = await Promise.all(Array.from({ length: 3 }, () => failing()));
  expect(failures.map(({ kind }) => kind)).toEqual(['connection', 'connection', 'connection']);
});

it('a server that comes to hang up on every connection is not asked without an end', async () => {
  await start({ x: reply({}) });
  await ask();
  fake.sessions.forEach((session) => session.destroy());
  await until(() => fake.sockets.size === 0);
  const opened = fake.opened;
  fake.onSecureConnection((socket) => socket.destroy());
  expect((await failing()).kind).toBe('connection');
  await pause(50);
  expect(fake.opened - opened).toBeLessThan(3);
});

it('a server that is not there fails all that wait, and each later one anew', async () => {
  await start({});
  await fake.close();
  const failures = await Promise.all(Array.from({ length: 5 }, () => failing()));
  expect(failures.map(({ kind }) => kind)).toEqual(new Array(5).fill('connection'));
  expect((await failing()).kind).toBe('connection');
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
