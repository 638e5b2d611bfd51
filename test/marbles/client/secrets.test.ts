import { inspect } from 'node:util';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { AdminClient, RestClient, SamplingClient, ServiceClient, type TinkerEvent } from 'tinker-rx';
import { VirtualClock, fakeTransport, json, refusal, text, type FakeRequest } from 'tinker-rx/testing';
import { redact } from '../../../src/dashboard/server/redact.js';
import { slimEvent } from '../../../src/dashboard/server/slimEvent.js';
import { datum, prompt } from './stage.js';

const KEY = 'tml-VERYSECRET-0123456789';
const TOKEN = 'tml-OTHERSECRET-9876543210';
const CLOUDFLARE = 'cloudflare-SECRET-555';
const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const JWT = `${part({ alg: 'none' })}.${part({ exp: 10_000, sub: 'me' })}.JWTSECRET`;
const SECRETS = [KEY, TOKEN, CLOUDFLARE, JWT];

/** Everything that can be seen of a value: printed with all its corners, as JSON, and as text. */
function visible(value: unknown): string {
  const printed = inspect(value, {
    depth: Infinity,
    showHidden: true,
    getters: true,
    maxArrayLength: Infinity,
    maxStringLength: Infinity,
  });
  let plain = '';
  try {
    plain = JSON.stringify(value);
  } catch {
    // What cannot be JSON cannot leak as JSON.
  }
  return `${printed}\n${plain}\n${value instanceof Error ? `${value.stack}\n${visible(value.cause)}` : ''}`;
}
function expectNoSecret(what: string, seen: string): void {
  for (const secret of SECRETS) expect(seen.includes(secret), `${what} shows ${secret}`).toBe(false);
}

/** A server that says back whatever it was told, the key included, and refuses half of it. */
const gossip = ({ headers }: FakeRequest, status: number) =>
  json(
    { detail: `bad credentials ${headers['x-api-key']}`, headers },
    { status, headers: { 'x-echo': headers['x-api-key']! } },
  );

describe.each([false, true])('secrets (JWT: %s)', (pjwtAuthEnabled) => {
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  });

  it('are in nothing that a run writes, throws or shows', () => {
    vi.stubEnv('CLOUDFLARE_ACCESS_CLIENT_SECRET', CLOUDFLARE);
    const lines: string[] = [];
    for (const method of ['error', 'warn', 'log', 'info', 'debug'] as const)
      vi.spyOn(console, method).mockImplementation(
        (...parts: unknown[]) => void lines.push(parts.map(String).join(' ')),
      );
    const clock = new VirtualClock();
    const fake = fakeTransport({
      scheduler: clock,
      config: { pjwtAuthEnabled },
      script: {
        'auth/token': [json({ jwt: JWT }), (request) => gossip(request, 403)],
        create_session: [(request) => gossip(request, 503)],
        optim_step: [(request) => gossip(request, 503), (request) => gossip(request, 403)],
        forward_backward: (request) =>
          request.body instanceof Uint8Array
            ? text(500, `crashed with ${request.headers['x-api-key']}`)
            : gossip(request, 422),
        asample: [
          (request) => gossip(request, 429),
          (request) => gossip(request, 402),
          (request) => gossip(request, 400),
        ],
        'retrieve_future SaveWeights': (request) => gossip(request, 400),
        'retrieve_future LoadWeights': (request) =>
          json({ error: `no access with ${request.headers['x-api-key']}`, category: 'user' }),
        session_heartbeat: (request) => gossip(request, 503),
        'client/dynamic_config': [json({ refresh_interval_sec: 10 }), (request) => gossip(request, 500)],
        copy_weights: (request) => json({ detail: request.headers }, { status: 404 }),
        weights_info: (request) => gossip(request, 403),
      },
    });
    const options = { ...fake.clientOptions, apiKey: KEY, telemetry: true, logLevel: 'debug' } as const;
    const service = new ServiceClient(options);
    const events: TinkerEvent[] = [];
    service.events$.subscribe((event) => events.push(event));
    const rest = new RestClient(options);
    const errors: unknown[] = [];
    const shown: [string, unknown][] = [
      ['service', service],
      ['rest', rest],
      ['admin', new AdminClient(options)],
      ['rest of service', service.rest],
    ];

    const model = clock.resolve(service.createLoraTrainingClient({ baseModel: 'any' }));
    const sampler = clock.resolve(service.createSamplingClient({ baseModel: 'any' }));
    const failing = [
      model.optimStep(),
      model.forwardBackward([datum()], 'cross_entropy'),
      model.saveState('a'),
      model.loadState('tinker://run/weights/a', { weightsAccessToken: TOKEN }),
      sampler.sample({ prompt: prompt() }),
      service.copyWeights('tinker://run/weights/a', { weightsAccessToken: TOKEN }),
      service.createTrainingClientFromState('tinker://run/weights/a', { weightsAccessToken: TOKEN }),
      rest.getTrainingRun('nowhere'),
    ];
    for (const future of failing) errors.push(clock.reject(future as never));
    shown.push(['future', model.optimStep()], ['training client', model], ['sampling client', sampler]);
    const handle = sampler.getSamplerHandle();
    shown.push(['handle', Buffer.from(handle, 'base64').toString()]);
    shown.push(['client of a handle', SamplingClient.fromSamplerHandle(handle, options)]);
    clock.advanceBy(200_000);
    clock.resolve(service.close());

    expect(errors).toHaveLength(8);
    expect(lines.length).toBeGreaterThan(5);
    expect(new Set(events.map(({ type }) => type)).size).toBeGreaterThan(8);
    expectNoSecret('an error', errors.map(visible).join('\n'));
    expectNoSecret('an event', events.map(visible).join('\n'));
    expectNoSecret('a log line', lines.join('\n'));
    for (const [what, value] of shown) expectNoSecret(what, visible(value));
    const reports = fake.to('telemetry').map(({ body }) => String(body));
    expect(reports.length).toBeGreaterThan(1);
    expectNoSecret('telemetry', reports.join('\n'));
    // The test would see them: they are in the requests.
    expect(visible(fake.requests.map(({ headers }) => headers))).toContain(KEY);
  });
});

describe('what a service says back with a success', () => {
  const TEAM = 'team-SECRET-0123456789';
  const BEARER = 'bearer-SECRET-0123456789';
  const LEAKS = [KEY, TEAM, BEARER];
  const echo = ({ headers }: FakeRequest): string =>
    `you sent ${headers['x-api-key']}, ${headers['x-team-credential']}, ${BEARER}\u001b[2J`;

  it.each([false, true])('reached events and stderr (session poll: %s)', (sampleUseRetrieveFutures) => {
    const lines: string[] = [];
    vi.spyOn(console, 'error').mockImplementation(
      (...parts: unknown[]) => void lines.push(parts.map(String).join(' ')),
    );
    const clock = new VirtualClock();
    const noted = (request: FakeRequest, body: unknown) =>
      json(body, { headers: { 'x-deprecation-note': echo(request), 'x-deprecation-level': echo(request) } });
    const waits = (request: FakeRequest, status: number) =>
      json({ type: 'try_again', queue_state: 'paused_capacity', queue_state_reason: echo(request) }, { status });
    const fake = fakeTransport({
      scheduler: clock,
      config: { sampleUseRetrieveFutures },
      script: {
        get_server_capabilities: (request) => noted(request, { supported_models: [] }),
        create_session: (request) =>
          noted(request, {
            session_id: 'session-1',
            info_message: echo(request),
            warning_message: echo(request),
            error_message: echo(request),
          }),
        'retrieve_future OptimStep': [(request) => waits(request, 200), (request) => waits(request, 408)],
        'retrieve_future Sample': (request) => waits(request, 408),
        retrieve_futures: json({ completions: [], cursor: 0 }),
      },
    });
    const service = new ServiceClient({
      ...fake.clientOptions,
      apiKey: KEY,
      logLevel: 'debug',
      defaultHeaders: { 'x-team-credential': TEAM, authorization: `Bearer ${BEARER}` },
    });
    const events: TinkerEvent[] = [];
    service.events$.subscribe((event) => events.push(event));
    clock.resolve(service.getServerCapabilities());
    clock.resolve(clock.resolve(service.createLoraTrainingClient({ baseModel: 'any' })).optimStep());
    const sample = clock.resolve(service.createSamplingClient({ baseModel: 'any' })).sample({ prompt: prompt() });
    clock.advanceBy(120_000);
    sample.cancel();
    const kinds = new Set(events.map(({ type }) => type));
    expect([...kinds]).toEqual(expect.arrayContaining(['deprecation-noted', 'session-message', 'queue-state']));
    expect(events.filter(({ type }) => type === 'queue-state').length).toBeGreaterThan(1);
    expect(lines.length).toBeGreaterThan(4);
    for (const seen of [events.map(visible).join('\n'), lines.join('\n')]) {
      for (const secret of LEAKS) expect(seen.includes(secret), `shows ${secret}`).toBe(false);
      expect(seen).toContain('you sent [redacted], [redacted], [redacted]');
      expect(seen).not.toContain('\u001b[2J');
    }
  });
});

describe('secret default headers that a service says back with a refusal', () => {
  it("are in no event, and so not in the dashboard's feed", () => {
    const clock = new VirtualClock();
    const hidden = {
      'x-team-credential': 'team-SECRET-0123456789',
      cookie: 'sid=cookie-SECRET',
      'x-gate-token': 'gate-SECRET',
    };
    const fake = fakeTransport({
      scheduler: clock,
      script: { optim_step: ({ headers }) => refusal(400, `you sent ${JSON.stringify(headers)}`) },
    });
    const service = new ServiceClient({
      ...fake.clientOptions,
      apiKey: KEY,
      logLevel: 'silent',
      defaultHeaders: hidden,
    });
    const events: TinkerEvent[] = [];
    service.events$.subscribe((event) => events.push(event));
    const trainer = clock.resolve(service.createLoraTrainingClient({ baseModel: 'any' }));
    const error = clock.reject(trainer.optimStep());
    expect(visible(fake.to('optim_step').map(({ headers }) => headers))).toContain('gate-SECRET');
    const feed = events.map((event) => redact(JSON.stringify(slimEvent(event))));
    expect(feed.join()).toContain('you sent');
    for (const seen of [visible(error), events.map(visible).join(), feed.join()]) expect(seen).not.toContain('SECRET');
  });
});

describe('a key that is refused', () => {
  it('is not in the error', () => {
    for (const apiKey of ['sk-VERYSECRET', 'tml-VERY SECRET', '\ntml-VERYSECRET'])
      expect(() => new ServiceClient({ apiKey })).not.toThrow(/SECRET/);
  });

  it('is not in an error that the service makes of it', () => {
    const clock = new VirtualClock();
    const fake = fakeTransport({ scheduler: clock, script: { 'client/config': refusal(401, `unknown key ${KEY}`) } });
    const error = clock.reject(new ServiceClient({ ...fake.clientOptions, apiKey: KEY }).getServerCapabilities());
    expect(error).toMatchObject({ code: 'authentication' });
    expectNoSecret('the error', visible(error));
  });
});
