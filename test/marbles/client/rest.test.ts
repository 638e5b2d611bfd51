import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  AdminClient,
  RestClient,
  SamplingClient,
  ServiceClient,
  type ConnectOptions,
  type LogLevel,
  type RequestFailedError,
  type TinkerFuture,
} from 'tinker-rx';
import { VirtualClock, dropped, fakeTransport, json, refusal, type Script } from 'tinker-rx/testing';
import { gaps, prompt } from './stage.js';

function rest(script: Script) {
  const clock = new VirtualClock();
  const fake = fakeTransport({ scheduler: clock, script });
  return { clock, fake, client: new RestClient(fake.clientOptions), admin: new AdminClient(fake.clientOptions) };
}

afterEach(() => vi.restoreAllMocks());

describe('a client without a service client', () => {
  /** What it prints while its service is away for half a minute. */
  function printed(
    make: (options: ConnectOptions) => { call(): TinkerFuture<unknown> },
    logLevel?: LogLevel,
  ): string[] {
    const lines: string[] = [];
    vi.spyOn(console, 'error').mockImplementation((line: string) => void lines.push(line));
    const clock = new VirtualClock();
    const fake = fakeTransport({ scheduler: clock, script: { 'client/config': refusal(503, 'down') } });
    const { logLevel: _, ...options } = fake.clientOptions;
    clock.reject(make({ ...options, ...(logLevel === undefined ? {} : { logLevel }) }).call());
    return lines;
  }
  const CLIENTS: [string, Parameters<typeof printed>[0]][] = [
    ['RestClient', (options) => ({ call: () => new RestClient(options).listUserCheckpoints() })],
    ['AdminClient', (options) => ({ call: () => new AdminClient(options).getApiKey() })],
  ];

  it.each(CLIENTS)('says what it waits for: %s', (_, make) => {
    expect(printed(make)[0]).toBe(
      'tinker-rx warning: attempt 3 failed, next attempt in 4 s: POST /api/v1/client/config: 503 down',
    );
  });

  it.each(CLIENTS)('says as much as it is asked to: %s', (_, make) => {
    expect(printed(make, 'silent')).toEqual([]);
    expect(printed(make, 'info')[0]).toContain('attempt 1 failed');
  });

  it('says what it waits for: SamplingClient.fromSamplerHandle', () => {
    const lines: string[] = [];
    vi.spyOn(console, 'error').mockImplementation((line: string) => void lines.push(line));
    const clock = new VirtualClock();
    const fake = fakeTransport({
      scheduler: clock,
      script: { asample: Array.from({ length: 3 }, () => refusal(503, 'down')) },
    });
    const { logLevel: _, ...options } = fake.clientOptions;
    const service = new ServiceClient({ ...options, logLevel: 'silent' });
    const handle = clock.resolve(service.createSamplingClient({ baseModel: 'any' })).getSamplerHandle();
    const sampler = SamplingClient.fromSamplerHandle(handle, options);
    const events: string[] = [];
    sampler.events$.subscribe(({ type }) => events.push(type));
    clock.resolve(sampler.sample({ prompt: prompt() }));
    expect(lines).toEqual(['tinker-rx warning: attempt 3 failed, next attempt in 4 s: POST /api/v1/asample: 503 down']);
    expect(events).toContain('request-retry');
  });
});

describe('the REST clients', () => {
  it('need no session, name the method that asks, and keep its version', () => {
    const { clock, fake, client } = rest({ checkpoints: json({ checkpoints: [] }) });
    expect(clock.resolve(client.listUserCheckpoints({ limit: 5, offset: 10 }))).toEqual({ checkpoints: [] });
    expect(fake.requests.map(({ path }) => path)).toEqual(['client/config', 'checkpoints']);
    const { headers, query, lane, method } = fake.to('checkpoints')[0]!;
    expect([method, lane, query.toString()]).toEqual(['GET', 'rest', 'limit=5&offset=10']);
    expect(headers).toMatchObject({ 'x-sdk-method': 'list_user_checkpoints', 'x-sdk-version': '0.36.0' });
    expect(headers).not.toHaveProperty('x-idempotency-key');
  });

  it('are patient like every other send', () => {
    const { clock, fake, client } = rest({
      'training_runs/run': [refusal(503), dropped(), refusal(404, 'no such run')],
    });
    expect(clock.reject(client.getTrainingRun('run'))).toMatchObject({ code: 'not_found' });
    expect(gaps(fake.to('training_runs/run'))).toEqual([1000, 2000]);
  });

  it('keep ids in their place: a slash or a question mark leads nowhere else', () => {
    const { clock, fake, client } = rest({});
    clock.reject(client.getTrainingRun('a?b=c#d'));
    clock.reject(client.deleteCheckpointFromTinkerPath('tinker://s:train:0/weights/50% done'));
    expect(fake.requests.slice(1).map(({ path }) => path)).toEqual([
      'training_runs/a?b=c#d',
      'training_runs/s:train:0/checkpoints/weights/50% done',
    ]);
  });

  it('refuse a path that is none before anything is sent, as a failed future', () => {
    const { clock, fake, client } = rest({});
    for (const call of [
      client.deleteCheckpointFromTinkerPath('nowhere'),
      client.publishCheckpointFromTinkerPath('tinker://'),
      client.getTrainingRunByTinkerPath('nowhere'),
      client.getExternalWeightsUrls('tinker://run/weights/a'),
      client.copyWeights('nowhere', { destinationProjectId: 'p' }),
    ])
      expect(clock.reject(call as never)).toMatchObject({ code: 'invalid_input' });
    expect(fake.requests).toEqual([]);
  });

  it('ask for a trace every five seconds until it is built', () => {
    const pending = json({ status: 'pending' });
    const { clock, fake, client } = rest({
      'sessions/s/trace_export': [pending, pending, json({ status: 'ready', url: 'https://trace' })],
    });
    expect(clock.resolve(client.exportSessionTrace('s'))).toBe('https://trace');
    expect(gaps(fake.to('sessions/s/trace_export'))).toEqual([5000, 5000]);
  });

  it('say why a trace could not be built', () => {
    const { clock, client } = rest({ 'sessions/s/trace_export': json({ status: 'failed', error: 'too old' }) });
    const error = clock.reject(client.exportSessionTrace('s')) as RequestFailedError;
    expect(error.message).toBe('the trace export of s failed: too old');
  });

  it('send times and filters of the administrator', () => {
    const { clock, fake, admin } = rest({});
    clock.reject(admin.getBillingUsage({ startingOn: new Date(0), endingBefore: '2026-01-31' }));
    clock.reject(admin.getAuditLog({ day: '2026-01-31' }));
    expect(fake.requests.slice(1).map(({ path, query }) => [path, Object.fromEntries(query)])).toMatchObject([
      ['billing/usage/events', { ending_before: '2026-01-31' }],
      ['audit', { event_type: 'all', day: '2026-01-31' }],
    ]);
  });

  it('fail once: one call that fails is one event', () => {
    const { clock, client } = rest({});
    const failed: string[] = [];
    client.events$.subscribe((event) => event.type === 'request-failed' && failed.push(event.error.code));
    clock.reject(client.setCheckpointTtlFromTinkerPath('tinker://run/weights/a', 7200));
    clock.reject(client.getTrainingRunByTinkerPath('tinker://run/weights/a'));
    clock.reject(client.deleteCheckpointFromTinkerPath('nowhere'));
    expect(failed).toEqual(['not_found', 'not_found', 'invalid_input']);
  });

  it('stop sending when they are cancelled', () => {
    const { clock, fake, client } = rest({ 'training_runs/run/checkpoints/weights/a/ttl': refusal(503) });
    const call = client.setCheckpointTtlFromTinkerPath('tinker://run/weights/a', 7200);
    clock.advanceBy(1500);
    call.cancel();
    clock.advanceBy(60_000);
    expect(fake.requests.filter(({ method }) => method === 'PUT')).toHaveLength(2);
  });
});
