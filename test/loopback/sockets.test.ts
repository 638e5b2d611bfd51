import { afterEach, describe, expect, it } from 'vitest';
import { of } from 'rxjs';
import {
  APIConnectionError,
  ModelInput,
  RestClient,
  ServiceClient,
  type ServiceClientOptions,
  type TinkerEvent,
} from 'tinker-rx';
import { FakeService, halfBody, inTurn, reply, reset, type Answer } from './support/fakeService.js';
import { hurry } from './support/hurry.js';

const KEY = 'tml-loopback';
let fake: FakeService;
let service: ServiceClient;
const events: TinkerEvent[] = [];

async function start(answers: Record<string, Answer>, options: ServiceClientOptions = {}): Promise<void> {
  fake = await FakeService.start(answers);
  service = new ServiceClient({
    baseUrl: fake.url,
    apiKey: KEY,
    telemetry: false,
    logLevel: 'silent',
    scheduler: hurry(50),
    ...options,
  });
  events.length = 0;
  service.events$.subscribe((event) => events.push(event));
}
afterEach(async () => {
  await service?.destroy();
  await fake?.close();
});

const trainer = () => service.createLoraTrainingClient({ baseModel: 'm' });
const created = () => ({ retrieve_future: inTurn(reply({ model_id: 'model' }), reply({ metrics: {} })) });

describe('a submission', () => {
  it.each([
    ['a reset', reset],
    ['a half-written body', halfBody],
    ['a 503', reply({ detail: 'later' }, 503)],
  ])('survives %s and goes out again under the same key and number', async (_, fault) => {
    await start({ ...created(), optim_step: inTurn(fault, fault, reply({ request_id: 'step' })) });
    await (await trainer()).optimStep();
    const hits = fake.hitsOf('optim_step');
    expect(hits.map(({ json }) => json['seq_id'])).toStrictEqual([1, 1, 1]);
    expect(new Set(hits.map(({ headers }) => headers['x-idempotency-key'])).size).toBe(1);
  });

  it('goes out on a new connection after a 400 without a body', async () => {
    const bare: Answer = (response) => response.writeHead(400, { 'content-length': '0' }).end();
    await start({ ...created(), optim_step: inTurn(bare, reply({ request_id: 'step' })) });
    const client = await trainer();
    const opened = fake.opened;
    await client.optimStep();
    expect(fake.hitsOf('optim_step')).toHaveLength(2);
    expect(fake.opened).toBe(opened + 1);
  });

  it('is one hit when it is cancelled during backoff', async () => {
    await start({ get_server_capabilities: reply({ detail: 'later' }, 503) }, { scheduler: hurry(1) });
    const capabilities = service.getServerCapabilities();
    while (fake.hitsOf('get_server_capabilities').length === 0) await pause(5);
    await pause(20);
    capabilities.cancel();
    await pause(1500);
    expect(fake.hitsOf('get_server_capabilities')).toHaveLength(1);
    await expect(capabilities).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('that has its number goes out although it is cancelled during backoff: a gap would hold up the model', async () => {
    await start({ ...created(), optim_step: inTurn(reply({ detail: 'later' }, 503), reply({ request_id: 'step' })) });
    const client = await trainer();
    const cancelled = client.optimStep();
    while (fake.hitsOf('optim_step').length === 0) await pause(1);
    cancelled.cancel();
    await client.optimStep();
    expect(fake.hitsOf('optim_step').map(({ json }) => json['seq_id'])).toStrictEqual([1, 1, 2]);
    await expect(cancelled).rejects.toMatchObject({ code: 'cancelled' });
  });
});

describe('a poll', () => {
  it('that nobody answers is given up and asked again', async () => {
    const silent: Answer = () => {};
    // One silent answer, whichever poll of the step comes first: on a busy machine the model's own poll may be given up too.
    const ofStep = inTurn(silent, reply({ metrics: { done: 1 } }));
    await start(
      {
        retrieve_future: (response, hit, request) =>
          (hit.json['request_id'] === 'step' ? ofStep : reply({ model_id: 'model' }))(response, hit, request),
        optim_step: reply({ request_id: 'step' }),
      },
      { pollTimeoutMs: 50_000 },
    );
    expect(await (await trainer()).optimStep()).toStrictEqual({ metrics: { done: 1 } });
    const polls = fake.hitsOf('retrieve_future').filter(({ json }) => json['request_id'] === 'step');
    expect(polls.map(({ headers }) => headers['x-tinker-request-iteration'])).toStrictEqual(['0', '1']);
    expect(events.find((event) => event.type === 'request-retry')).toMatchObject({ error: { code: 'timeout' } });
  });

  it('survives resets and half-written bodies', async () => {
    await start({
      retrieve_future: inTurn(reply({ model_id: 'model' }), reset, halfBody, reply({ metrics: {} })),
      optim_step: reply({ request_id: 'step' }),
    });
    await (await trainer()).optimStep();
    expect(fake.hitsOf('retrieve_future')).toHaveLength(4);
  });
});

describe('lanes', () => {
  it('let a heartbeat through while 2,000 polls are open', async () => {
    const held: Answer = () => {};
    let n = 0;
    await start(
      {
        asample: (response, hit, request) => reply({ request_id: `r${n++}` })(response, hit, request),
        retrieve_future: held,
      },
      { scheduler: hurry(4), pollTimeoutMs: 600_000 },
    );
    const sampler = await service.createSamplingClient({ baseModel: 'm' });
    const prompt = ModelInput.fromInts([1, 2, 3]);
    for (let index = 0; index < 2000; index++)
      void sampler.sample({ prompt, samplingParams: { maxTokens: 1 } }).subscribe({ error: () => {} });
    while (fake.hitsOf('retrieve_future').length < 2000) await pause(20);
    const before = fake.hitsOf('session_heartbeat').length;
    // A heartbeat that waited for a poll would never come: no poll is answered.
    await expect.poll(() => fake.hitsOf('session_heartbeat').length).toBeGreaterThan(before);
    expect(fake.hitsOf('retrieve_future')).toHaveLength(2000);
  });
});

describe('close', () => {
  it('waits for what is in flight, finishes the session, and leaves no connection open', async () => {
    const slow: Answer = (...seen) => setTimeout(() => reply({ metrics: { late: 1 } })(...seen), 150);
    await start({
      retrieve_future: inTurn(reply({ model_id: 'model' }), slow),
      optim_step: reply({ request_id: 'step' }),
    });
    const step = (await trainer()).optimStep();
    await service.close({ status: 'errored', detail: 'why' });
    expect(await step).toStrictEqual({ metrics: { late: 1 } });
    expect(fake.hitsOf('sessions/s/finish').map(({ json }) => json)).toStrictEqual([
      { reason: { type: 'errored' }, detail: 'why' },
    ]);
    await expect.poll(() => fake.sockets.size).toBe(0);
    await expect(service.getServerCapabilities()).rejects.toMatchObject({ code: 'closed' });
  });

  it('ends although the server is gone', async () => {
    await start(created());
    await trainer();
    await fake.close();
    await service.close();
    expect(events.at(-1)).toBeDefined();
  });
});

describe('what cannot be sent as it is', () => {
  it('refuses a header of another alphabet in the constructor', () => {
    const make = (defaultHeaders: Record<string, string>) => () => new ServiceClient({ apiKey: KEY, defaultHeaders });
    expect(make({ 'X-Note': 'a – b SECRET' })).toThrow(
      expect.objectContaining({
        code: 'invalid_input',
        message: 'defaultHeaders: X-Note must be a text of characters that a header can carry (Latin-1)',
      }) as Error,
    );
    expect(make({ 'X Note': 'a' })).toThrow('defaultHeaders: "X Note" is not the name of a header');
    expect(make({ 'X-Note': 'two\nlines' })).toThrow('X-Note must be a text');
    expect(make({ 'X-Note': 5 as never })).toThrow('X-Note must be a text');
    expect(make({ Expect: '100-continue' })).toThrow('defaultHeaders: Expect cannot be set; the connection writes it');
  });

  it('refuses a credential of two lines before anything is sent', async () => {
    await start({}, { scheduler: hurry(1) });
    const command = new RestClient({
      baseUrl: fake.url,
      credential: { current: () => undefined, token: () => of('tml-two\nlines'), stop: () => {} },
    });
    await expect(command.listUserCheckpoints()).rejects.toMatchObject({ code: 'invalid_input', retryable: false });
    expect(fake.hits).toHaveLength(0);
    await command.close();
  });
});

it('a server that is not there is a connection error after five minutes of trying', async () => {
  await start({}, { scheduler: hurry(400) });
  await fake.close();
  const failure = await service.getServerCapabilities().either();
  expect(failure).toMatchObject({ _tag: 'Left', left: expect.any(APIConnectionError) as unknown });
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
