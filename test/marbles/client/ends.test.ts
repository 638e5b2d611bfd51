import { Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { isLeft, RestClient, SamplingClient, type TinkerError } from 'tinker-rx';
import { dropped, fakeTransport, json, refusal, VirtualClock } from 'tinker-rx/testing';
import { prompt, stage } from './stage.js';

const A_DAY_MS = 24 * 3_600_000;
const token = (lifeMs: number, nowMs = 0): string => {
  const claims = Buffer.from(JSON.stringify({ exp: (nowMs + lifeMs) / 1000 })).toString('base64url');
  return `eyJ.${claims}.signature`;
};
const withJwt = {
  config: { pjwtAuthEnabled: true },
  script: { 'auth/token': ({ atMs }: { atMs: number }) => json({ jwt: token(3_600_000, atMs) }) },
};

describe('work that calls share does not outlive destroy()', () => {
  it.each([50, 150, 250])('while the session is being opened (after %i ms)', (atMs) => {
    const on = stage({ latencyMs: 100 });
    const call = on.service.createSamplingClient({ baseModel: 'any' });
    on.clock.advanceBy(atMs);
    const destroyed = on.service.destroy();
    expect(on.clock.reject(call)).toMatchObject({ code: 'cancelled' });
    on.clock.resolve(destroyed);
    const sent = on.fake.requests.length;
    on.clock.advanceBy(A_DAY_MS);
    expect(on.fake.requests).toHaveLength(sent);
    expect(on.fake.requests.filter(({ state }) => state === 'open')).toEqual([]);
    expect(on.service.sessionId).toBeUndefined();
  });

  it('while a token is being fetched', () => {
    const on = stage({ latencyMs: 100, ...withJwt });
    on.service.createSamplingClient({ baseModel: 'any' });
    on.clock.advanceBy(150);
    expect(on.fake.requests.at(-1)!.path).toBe('auth/token');
    on.clock.resolve(on.service.destroy());
    on.clock.advanceBy(A_DAY_MS);
    expect(on.fake.to('auth/token')).toHaveLength(1);
  });
});

describe('the connection for a weightsAccessToken', () => {
  it('ends with its one call, and its events are the service’s', () => {
    const on = stage({ ...withJwt, script: { ...withJwt.script, weights_info: [refusal(503), dropped()] } });
    on.clock.resolve(
      on.service.createTrainingClientFromState('tinker://run/weights/a', { weightsAccessToken: 'tml-owner' }),
    );
    expect(on.eventsOf('request-retry').map(({ path }) => path)).toEqual(['weights_info', 'weights_info']);
    on.clock.resolve(on.service.close());
    const sent = on.fake.requests.length;
    on.clock.advanceBy(A_DAY_MS);
    expect(on.fake.requests).toHaveLength(sent);
  });
});

describe('a client on its own', () => {
  it('is closed also with a transport that was given to it', () => {
    const clock = new VirtualClock();
    const fake = fakeTransport({
      scheduler: clock,
      ...withJwt,
      script: { ...withJwt.script, checkpoints: json({ checkpoints: [] }) },
    });
    const rest = new RestClient(fake.clientOptions);
    clock.resolve(rest.listUserCheckpoints());
    clock.resolve(rest.close());
    const sent = fake.requests.length;
    clock.advanceBy(A_DAY_MS);
    expect(fake.requests).toHaveLength(sent);
    expect(clock.reject(rest.listUserCheckpoints())).toMatchObject({ code: 'closed' });
  });
});

describe('fromSamplerHandle', () => {
  it('throws where the handle’s service wants a credential command that is not there', () => {
    const on = stage({ config: { pjwtAuthEnabled: true, credentialDefaultSource: 'credential_cmd' } }, {
      credential: { current: () => 'tml-a', token: () => new Subject(), stop: () => undefined },
    } as never);
    const handle = handleWanting(on.fake.clientOptions.baseUrl);
    expect(() => SamplingClient.fromSamplerHandle(handle, on.fake.clientOptions)).toThrow(/TINKER_CREDENTIAL_CMD/);
  });
});

const handleWanting = (baseUrl: string): string =>
  Buffer.from(
    JSON.stringify({
      session_id: 's',
      sampling_session_id: 's:sample:0',
      holder: {
        base_url: baseUrl,
        client_config: { pjwt_auth_enabled: true, credential_default_source: 'credential_cmd' },
        client_dynamic_config: {},
      },
    }),
  ).toString('base64');

describe('a failure that nobody reads', () => {
  it('is a warning when the client closes, once for each call', () => {
    const on = stage({ script: { save_weights: refusal(403, 'not yours') } });
    const model = on.trainer();
    model.saveState('a');
    model.saveState('b');
    on.clock.reject(model.saveState('c'));
    on.clock.resolve(on.service.close());
    expect(on.eventsOf('failure-unread').map(({ requestType, error }) => [requestType, error.message])).toEqual([
      ['SaveWeights', 'POST /api/v1/save_weights: 403 not yours'],
      ['SaveWeights', 'POST /api/v1/save_weights: 403 not yours'],
    ]);
  });

  it('is a warning after a minute while the client is open, and then no more', () => {
    const on = stage({ script: { optim_step: refusal(403, 'no') } });
    const model = on.trainer();
    model.optimStep();
    const read = model.optimStep();
    on.clock.advanceBy(59_000);
    expect(on.eventsOf('failure-unread')).toEqual([]);
    on.clock.reject(read);
    on.clock.advanceBy(2000);
    expect(on.eventsOf('failure-unread')).toHaveLength(1);
    on.clock.resolve(on.service.close());
    expect(on.eventsOf('failure-unread')).toHaveLength(1);
  });

  it('is none when the caller cancelled it, or destroyed the client', () => {
    const on = stage({ latencyMs: 100 });
    const model = on.trainer();
    model.optimStep().cancel();
    model.optimStep();
    on.clock.resolve(on.service.destroy());
    expect(on.eventsOf('failure-unread')).toEqual([]);
  });
});

describe('the end of a client', () => {
  it('refuses a call that an error handler makes while destroy() cancels', () => {
    const on = stage({ workMs: 60_000 });
    const model = on.trainer();
    const startMs = on.clock.now();
    let later: TinkerError | undefined;
    model.optimStep().subscribe({
      error: () => model.optimStep().subscribe({ error: (error: TinkerError) => (later = error) }),
    });
    on.clock.resolve(on.service.destroy());
    expect(later).toMatchObject({ code: 'closed' });
    expect(on.clock.now()).toBe(startMs);
  });

  it('comes though a call never ends: an hour after the last one that did', () => {
    const on = stage({
      latencyMs: ({ path }) => (path === 'retrieve_future' ? 40_000 : 0),
      script: { 'retrieve_future OptimStep': json({ type: 'try_again', queue_state: 'active' }) },
    });
    const model = on.trainer();
    const stuck = model.optimStep();
    const startMs = on.clock.now();
    const closed = on.service.close();
    on.clock.advanceBy(3_599_000);
    expect([...on.service.pending().calls]).toHaveLength(1);
    expect(on.clock.reject(stuck)).toMatchObject({ code: 'closed' });
    on.clock.resolve(closed);
    expect(on.clock.now()).toBe(startMs + 3_600_000);
  });

  it('comes sooner where close is told so', () => {
    const on = stage({ workMs: 60_000 });
    const step = on.trainer().optimStep();
    const startMs = on.clock.now();
    on.clock.resolve(on.service.close({ timeoutMs: 500 }));
    expect(on.clock.now() - startMs).toBe(500);
    expect(on.clock.reject(step)).toMatchObject({ code: 'closed' });
  });
});

describe('either()', () => {
  it('cancels the sample itself', () => {
    const on = stage({ workMs: 10_000, dynamicConfig: { sampleCancelEnabled: true } });
    const sample = on.sampler().sample({ prompt: prompt() });
    const view = sample.either();
    on.clock.advanceBy(10);
    view.cancel();
    expect(on.clock.reject(sample)).toMatchObject({ code: 'cancelled' });
    const outcome = on.clock.resolve(view);
    expect(isLeft(outcome) && outcome.left.code).toBe('cancelled');
    expect(on.fake.to('cancel_future')).toHaveLength(1);
  });
});

describe('a number that JSON cannot write', () => {
  it.each([NaN, null, Infinity, 1n])('is refused as numSamples also after a sample without it (%s)', (numSamples) => {
    const on = stage();
    const sampler = on.sampler();
    on.clock.resolve(sampler.sample({ prompt: prompt() }));
    expect(on.clock.reject(sampler.sample({ prompt: prompt(), numSamples: numSamples as never }))).toMatchObject({
      code: 'invalid_input',
    });
    expect(on.fake.to('asample')).toHaveLength(1);
  });
});

describe('empty 400s', () => {
  it('to a sample are a proxy’s: it fails after 17 of them, not after two hours', () => {
    const on = stage({ script: { asample: { status: 400, headers: {}, body: new Uint8Array() } } });
    expect(on.clock.reject(on.sampler().sample({ prompt: prompt() }))).toMatchObject({ status: 400 });
    expect(on.fake.to('asample')).toHaveLength(17);
  });
});

describe('a DELETE whose answer was lost', () => {
  const path = 'tinker://run/weights/a';

  it('is done when the next try finds nothing', () => {
    const on = stage({
      script: { 'training_runs/run/checkpoints/weights/a': [dropped(), refusal(404)] },
    });
    on.clock.resolve(on.service.rest.deleteCheckpointFromTinkerPath(path));
    expect(on.fake.requests.filter(({ method }) => method === 'DELETE')).toHaveLength(2);
  });

  it('is not what a first 404 is', () => {
    const on = stage();
    expect(on.clock.reject(on.service.rest.deleteCheckpointFromTinkerPath(path))).toMatchObject({ code: 'not_found' });
  });
});

describe('400 samples answered 429 at once', () => {
  it('go out again ten at a time', () => {
    const on = stage({
      latencyMs: ({ path }) => (path === 'asample' ? 100 : 0),
      script: { asample: new Array(400).fill(refusal(429)) as never },
    });
    const sampler = on.sampler();
    const samples = Array.from({ length: 400 }, () => sampler.sample({ prompt: prompt() }));
    for (const sample of samples) on.clock.resolve(sample);
    const again = on.fake.to('asample').slice(400);
    const open = again.map(({ atMs }) => again.filter((other) => other.atMs <= atMs && other.endedMs! > atMs).length);
    expect(Math.max(...open)).toBe(10);
    expect(new Set(again.map(({ seqId }) => seqId)).size).toBe(400);
  });
});
