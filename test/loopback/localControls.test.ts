import { describe, expect, it } from 'vitest';
import type { Json } from './localCaller.js';
import { closeAfterEach, datum, sampleBody, soon, start, type Fixture } from './localFixture.js';

closeAfterEach();

async function sampler({ caller }: Fixture): Promise<string> {
  const answer = await caller.post('create_sampling_session', {
    session_id: await caller.createSession(),
    sampling_session_seq_id: 0,
    base_model: 'fake/model',
  });
  return answer['sampling_session_id'] as string;
}

const BACKPRESSURE = { 'x-tinker-sampling-backpressure': '1' };

describe('the fault plan', () => {
  it('answers the n-th call with a status, with or without Retry-After', async () => {
    const { caller } = await start({
      faults: {
        rules: [
          { endpoint: 'healthz', nth: 1, fault: { type: 'status', status: 429, retryAfter: 0.5 } },
          { endpoint: 'healthz', nth: 2, fault: { type: 'status', status: 429 } },
          { endpoint: 'healthz', nth: [3, 4], fault: { type: 'status', status: 503, body: 'overloaded' } },
          { endpoint: 'healthz', nth: 5, fault: { type: 'status', status: 402, detail: 'pay', retryAfterMs: 20 } },
        ],
      },
    });
    const answers = [];
    for (let call = 0; call < 6; call++) {
      const response = await caller.fetch('healthz');
      answers.push([response.status, response.headers.get('retry-after'), await response.text()]);
    }
    expect(answers).toEqual([
      [429, '0.5', '{"detail":"injected fault"}'],
      [429, null, '{"detail":"injected fault"}'],
      [503, null, 'overloaded'],
      [503, null, 'overloaded'],
      [402, null, '{"detail":"pay"}'],
      [200, null, '{"status":"ok"}'],
    ]);
  });

  it('does not carry out what it answers with a status', async () => {
    const { caller, local } = await start();
    local.controls.faults = {
      rules: [{ endpoint: 'create_session', times: 1, fault: { type: 'status', status: 408 } }],
    };
    expect((await caller.send('create_session', { tags: [], sdk_version: 'x' })).status).toBe(408);
    expect(await caller.get('sessions')).toEqual({ sessions: [] });
    await caller.createSession();
  });

  it('cuts the connection before or after the work is accepted', async () => {
    const { caller, local, engine } = await start();
    const model = await caller.createModel(await caller.createSession());
    const step = { model_id: model, seq_id: 1, adam_params: {} };
    local.controls.faults = { rules: [{ endpoint: 'optim_step', nth: 1, fault: { type: 'reset' } }] };
    await expect(caller.send('optim_step', step)).rejects.toThrow('fetch failed');
    expect(engine.log).toHaveLength(1);
    local.controls.faults = { rules: [{ endpoint: 'optim_step', nth: 1, fault: { type: 'reset', when: 'after' } }] };
    await expect(caller.send('optim_step', step)).rejects.toThrow('fetch failed');
    // The retry finds the work that the lost answer was about.
    expect(await caller.future('optim_step', step)).toMatchObject({ metrics: {} });
    expect(engine.log.filter((entry) => entry.startsWith('optim_step'))).toEqual(['optim_step 1']);
  });

  it('ends a body too early', async () => {
    const { caller, local } = await start();
    local.controls.faults = { rules: [{ endpoint: 'get_*', fault: { type: 'truncate', keepBytes: 5 } }] };
    const response = await caller.fetch('get_server_capabilities');
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
  });

  it('rolls the same dice for the same seed', async () => {
    const { caller, local } = await start();
    const roll = async (seed: number) => {
      local.controls.faults = { seed, rules: [{ probability: 0.4, fault: { type: 'status', status: 500 } }] };
      const statuses = [];
      for (let call = 0; call < 12; call++) statuses.push((await caller.fetch('healthz')).status);
      return statuses.join(' ');
    };
    const [first, again, other] = [await roll(1), await roll(1), await roll(2)];
    expect(first).toBe(again);
    expect(first).not.toBe(other);
    expect(first).toContain('500');
    expect(first).toContain('200');
    expect(() => (local.controls.faults = { rules: [{ probability: 2, fault: { type: 'reset' } }] })).toThrow(
      RangeError,
    );
  });

  it('pauses the queue for a while and says so to whoever polls', async () => {
    const { caller, local } = await start({ tryAgainAs: 'body' });
    const model = await caller.createModel(await caller.createSession());
    local.controls.faults = {
      rules: [
        {
          endpoint: 'optim_step',
          times: 1,
          fault: { type: 'pause', forMs: 150, queueState: 'paused_rate_limit', reason: 'busy' },
        },
      ],
    };
    const { request_id: id } = await caller.post('optim_step', { model_id: model, seq_id: 1, adam_params: {} });
    expect(await caller.post('retrieve_future', { request_id: id })).toMatchObject({
      type: 'try_again',
      queue_state: 'paused_rate_limit',
      queue_state_reason: 'busy',
    });
    const back = await caller.post('retrieve_future', { request_id: id });
    expect(back['queue_state'] === 'active' || 'metrics' in back).toBe(true);
    expect(await caller.result(id as string)).toMatchObject({ metrics: {} });
  });
});

describe('pause and latency', () => {
  it('accepts work while paused and starts none, training and sampling alike', async () => {
    const fixture = await start();
    const { caller, local, engine } = fixture;
    const session = await sampler(fixture);
    const model = await caller.createModel(await caller.createSession());
    local.controls.pause('paused_capacity', 'no machines');
    const pass = caller.forwardBackward(model, 1, [datum()]);
    const sample = caller.sample(sampleBody({ sampling_session_id: session, seq_id: 0 }));
    await soon(50);
    expect(engine.log.filter((entry) => /^(forward|sample )/.test(entry))).toEqual([]);
    local.controls.resume();
    await Promise.all([pass, sample]);
    expect(engine.log).toContain('forward_backward 3');
  });

  it('answers after the latency of an endpoint, and others meanwhile', async () => {
    const { caller, local } = await start({ latencyMs: 1 });
    expect((await caller.fetch('healthz')).status).toBe(200);
    local.controls.latencyMs = (endpoint) => (endpoint === 'healthz' ? 0 : 600_000);
    const abort = new AbortController();
    let answered = false;
    const slow = caller.fetch('sessions', { signal: abort.signal }).then(() => (answered = true));
    for (let request = 0; request < 10; request++) expect((await caller.fetch('healthz')).status).toBe(200);
    expect(answered).toBe(false);
    abort.abort();
    await expect(slow).rejects.toThrow(/abort/);
  });
});

describe('quotas', () => {
  it('answers samples over the quota with 429 where the client sends the backpressure header', async () => {
    const fixture = await start({ quotas: { sampling: { requests: 2 } } });
    const { caller, engine } = fixture;
    const session = await sampler(fixture);
    engine.hold();
    const send = (seqId: number, headers = {}) =>
      caller.send('asample', sampleBody({ sampling_session_id: session, seq_id: seqId }), headers);
    expect((await send(0, BACKPRESSURE)).status).toBe(200);
    expect((await send(1, BACKPRESSURE)).status).toBe(200);
    await soon();
    expect((await send(2, BACKPRESSURE)).status).toBe(429);
    // An older client does not know the answer 429 here: it is accepted and kept waiting.
    const waiting = (await (await send(3)).json()) as Json;
    await soon();
    engine.release();
    expect(await caller.result(waiting['request_id'] as string)).toHaveProperty('sequences');
    expect((await send(2, BACKPRESSURE)).status).toBe(200);
  });

  it('counts bytes, and lets one oversized request through', async () => {
    const fixture = await start({ quotas: { sampling: { bytes: 50 } }, pollHoldMs: 20, tryAgainAs: 'body' });
    const { caller, engine } = fixture;
    const session = await sampler(fixture);
    engine.hold();
    const send = (seqId: number, headers = {}) =>
      caller.send('asample', sampleBody({ sampling_session_id: session, seq_id: seqId }), headers);
    expect((await send(0, BACKPRESSURE)).status).toBe(200);
    await soon();
    expect((await send(1, BACKPRESSURE)).status).toBe(429);
    const { request_id: id } = (await (await send(2)).json()) as Json;
    expect(await caller.post('retrieve_future', { request_id: id })).toMatchObject({
      queue_state: 'paused_rate_limit',
    });
    engine.release();
  });

  it('limits training work in flight, and takes a retry of what it accepted', async () => {
    const { caller, engine, local } = await start();
    const model = await caller.createModel(await caller.createSession());
    local.controls.training.limits = { requests: 1 };
    engine.hold();
    const step = (seqId: number) => caller.send('optim_step', { model_id: model, seq_id: seqId, adam_params: {} });
    expect((await step(1)).status).toBe(200);
    const refused = await step(2);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect((await step(1)).status).toBe(200);
    engine.release();
    await expect.poll(async () => (await step(2)).status).toBe(200);
  });
});
