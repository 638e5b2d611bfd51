import { request as httpRequest } from 'node:http';
import { gzipSync } from 'node:zlib';
import * as zlib from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import { LocalTinker } from '../../src/local/index.js';
import { encodeForwardBackwardRequest } from '../../src/wire/index.js';
import type { Json, LocalCaller } from './localCaller.js';
import { closeAfterEach, datum, sampleBody, start } from './localFixture.js';

closeAfterEach();

describe('flags', () => {
  it('answers every flag with its default, and what was set', async () => {
    const { caller, local } = await start({ flags: { fwdbwdMaxChunkLen: 7 } });
    const config = await caller.post('client/config', { sdk_version: '0.36.0' });
    expect(config).toMatchObject({ fwdbwd_max_chunk_len: 7, pjwt_auth_enabled: false, parallel_fwdbwd_chunks: true });
    expect(Object.keys(config)).toHaveLength(17);
    local.controls.flags = { sampleUseRetrieveFutures: true };
    local.controls.dynamicFlags = { refreshIntervalSec: 60 };
    expect(await caller.post('client/config', { sdk_version: 'x' })).toMatchObject({
      sample_use_retrieve_futures: true,
    });
    expect(await caller.post('client/dynamic_config', { sdk_version: 'x' })).toEqual({
      refresh_interval_sec: 60,
      // It does cancel samples, so it says so.
      sample_cancel_enabled: true,
      sample_cancel_max_batch_size: 64,
    });
  });

  it('tells its models and its health', async () => {
    const { caller } = await start();
    expect(await caller.get('healthz')).toEqual({ status: 'ok' });
    expect(await caller.get('get_server_capabilities')).toEqual({
      supported_models: [{ model_name: 'fake/model', max_context_length: 64, trainable: true, sampleable: true }],
    });
  });
});

describe('sessions', () => {
  /** Waits until the service has ended a session. */
  const over = (caller: LocalCaller, session: string) =>
    vi.waitFor(
      async () => {
        const { sessions } = await caller.post('sessions/search', { statuses: [{ type: 'cancelled' }] });
        expect(sessions).toMatchObject([{ session_id: session }]);
      },
      { timeout: 240_000 },
    );

  it('says why a session is over that was silent for too long', async () => {
    const { caller } = await start({ sessionTtlMs: 30 });
    const session = await caller.createSession();
    await over(caller, session);
    const answer = await caller.send('session_heartbeat', { session_id: session, type: 'session_heartbeat' });
    expect(answer.status).toBe(410);
    expect(await answer.text()).toContain('is over: cancelled, no heartbeat for 0.03 s');
  });

  it('says why a session is over whose sampler is asked', async () => {
    const { caller } = await start({ sessionTtlMs: 2000 });
    const session = await caller.createSession();
    const { sampling_session_id: sampler } = await caller.post('create_sampling_session', {
      ...{ session_id: session, sampling_session_seq_id: 0, base_model: 'fake/model', type: 'create_sampling_session' },
    });
    await over(caller, session);
    const answer = await caller.send('asample', {
      ...{ sampling_session_id: sampler, seq_id: 1, num_samples: 1, prompt: { chunks: [] }, sampling_params: {} },
    });
    expect(answer.status).toBe(410);
    expect(await answer.text()).toContain(`session ${session} is over: cancelled, no heartbeat for 2 s`);
  });

  it('ends with the first reason given; later heartbeats and work get 410', async () => {
    const { caller } = await start();
    const session = await caller.createSession();
    expect(await caller.post('session_heartbeat', { session_id: session })).toEqual({ type: 'session_heartbeat' });
    const finish = (type: string, detail?: string) =>
      caller.send(`sessions/${session}/finish`, { reason: { type }, detail: detail ?? null });
    expect((await finish('success', 'done')).status).toBe(204);
    expect((await finish('errored')).status).toBe(204);
    expect((await caller.send('session_heartbeat', { session_id: session })).status).toBe(410);
    const model = { session_id: session, model_seq_id: 0, base_model: 'fake/model', lora_config: { rank: 1 } };
    expect((await caller.send('create_model', model)).status).toBe(410);
    const { sessions } = await caller.post('sessions/search', { session_id: session });
    expect(sessions).toMatchObject([
      { status: { type: 'client_finished', reason: { type: 'success' }, detail: 'done' } },
    ]);
    expect((await caller.send('session_heartbeat', { session_id: 'none' })).status).toBe(404);
  });

  it('runs the work it accepted before it ended, then frees the model', async () => {
    const { caller, engine } = await start();
    const session = await caller.createSession();
    const model = await caller.createModel(session);
    engine.hold();
    const { request_id: id } = (await (await caller.submitPass(model, 1, [datum()])).json()) as Json;
    const stranded = (await (await caller.submitPass(model, 3, [datum()])).json()) as Json;
    await caller.send(`sessions/${session}/finish`, { reason: { type: 'interrupted' } });
    engine.release();
    expect(await caller.result(id as string)).toMatchObject({ loss_fn_output_type: 'ArrayRecord' });
    expect(await caller.result(stranded['request_id'] as string)).toMatchObject({ category: 'user' });
    await expect.poll(() => engine.log.at(-1)).toBe(`dispose ${model}`);
    expect((await caller.submitPass(model, 2, [datum()])).status).toBe(410);
  });

  it('expires without heartbeat', async () => {
    const { caller } = await start({ sessionTtlMs: 600 });
    const silent = await caller.createSession();
    await over(caller, silent);
    expect((await caller.send('session_heartbeat', { session_id: silent })).status).toBe(410);
    const { sessions } = await caller.post('sessions/search', { statuses: [{ type: 'cancelled' }] });
    expect(sessions).toMatchObject([{ session_id: silent, status: { detail: 'no heartbeat for 0.6 s' } }]);
  });

  it('is created once for one idempotency key', async () => {
    const { caller } = await start();
    const create = (key: string) =>
      caller.post('create_session', { tags: [], sdk_version: 'x' }, { 'x-idempotency-key': key });
    expect(await create('a')).toEqual(await create('a'));
    expect(await create('a')).not.toEqual(await create('b'));
  });
});

describe('who may ask', () => {
  it('needs the key for everything', async () => {
    const { local, caller } = await start();
    expect(local.apiKey).toMatch(/^tml-/);
    for (const headers of [
      {},
      { 'x-api-key': 'tml-wrong' },
      { 'x-api-key': `${local.apiKey}x` },
      { authorization: 'Bearer x' },
    ]) {
      const response = await fetch(`${local.url}/api/v1/healthz`, { headers: headers as Record<string, string> });
      expect(response.status).toBe(401);
      expect(await response.text()).not.toContain(local.apiKey);
    }
    const bearer = await fetch(`${local.url}/api/v1/healthz`, { headers: { authorization: `Bearer ${local.apiKey}` } });
    expect(bearer.status).toBe(200);
    expect((await caller.fetch('../secret')).status).toBe(404);
    expect((await caller.fetch('nonsense')).status).toBe(404);
    expect((await caller.fetch('create_session')).status).toBe(405);
  });

  it('exchanges the key for a token where that is enabled, and takes the token', async () => {
    const { local, caller } = await start({ flags: { pjwtAuthEnabled: true }, jwtTtlMs: 60_000 });
    const { jwt } = await caller.post('auth/token', {});
    const claims = JSON.parse(Buffer.from((jwt as string).split('.')[1]!, 'base64url').toString()) as Json;
    expect(claims).toMatchObject({ sub: 'tml:organization_user:local', org_id: 'local' });
    expect((claims['exp'] as number) * 1000 - Date.now()).toBeGreaterThan(0);
    const whoami = await fetch(`${local.url}/api/v1/whoami`, { headers: { 'x-api-key': jwt as string } });
    expect(await whoami.json()).toEqual({
      user_urn: 'tml:organization_user:local',
      org_urn: 'tml:organization:local',
      email: 'local@localhost',
    });
    const forged = `${(jwt as string).slice(0, -3)}abc`;
    expect((await fetch(`${local.url}/api/v1/whoami`, { headers: { 'x-api-key': forged } })).status).toBe(401);
    local.controls.flags = {};
    expect((await caller.send('auth/token', {})).status).toBe(404);
  });

  it('refuses a token that has expired', async () => {
    const { local, caller } = await start({ flags: { pjwtAuthEnabled: true }, jwtTtlMs: 0 });
    const { jwt } = await caller.post('auth/token', {});
    const response = await fetch(`${local.url}/api/v1/healthz`, { headers: { 'x-api-key': jwt as string } });
    expect(response.status).toBe(401);
  });

  it('describes and revokes its key', async () => {
    const { caller } = await start();
    expect(await caller.get('auth/apikey/me')).toMatchObject({ key_id: 1, name: 'local' });
    expect((await caller.fetch('auth/apikey/me', { method: 'DELETE' })).status).toBe(204);
    expect((await caller.fetch('healthz')).status).toBe(401);
  });

  it('refuses names in the Host header that are not of this machine', async () => {
    const { local } = await start();
    const ask = (host: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const url = new URL(`${local.url}/api/v1/healthz`);
        const headers = { host, 'x-api-key': local.apiKey };
        httpRequest(url, { headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
        })
          .on('error', reject)
          .end();
      });
    expect(await ask('evil.example')).toBe(403);
    expect(await ask('127.0.0.1.evil.example:80')).toBe(403);
    expect(await ask('localhost:1')).toBe(200);
    expect(await ask('[::1]:80')).toBe(200);
  });

  it('listens on loopback, and takes only keys the SDKs take', async () => {
    const { local } = await start({ apiKey: 'tml-mine' });
    expect(local.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(local.apiKey).toBe('tml-mine');
    await expect(LocalTinker.start({ apiKey: 'mine' })).rejects.toThrow(RangeError);
    await expect(LocalTinker.start({ clockMs: -1 })).rejects.toThrow('clockMs must be ≥ 0, got -1');
    expect(JSON.stringify(local)).not.toContain('tml-mine');
  });
});

describe('request bodies', () => {
  it('refuses what is too large, packed or unpacked', async () => {
    const { caller } = await start({ maxRequestBytes: 1000 });
    const post = (body: Uint8Array, headers: Record<string, string> = {}) =>
      caller.fetch('telemetry', { method: 'POST', body: Buffer.from(body), headers });
    expect((await post(Buffer.alloc(1001, ' '))).status).toBe(413);
    expect((await post(gzipSync(Buffer.alloc(100_000, ' ')), { 'content-encoding': 'gzip' })).status).toBe(413);
    expect((await caller.fetch('healthz')).status).toBe(200);
  });

  it('says which field is wrong and never what was in it', async () => {
    const { caller } = await start();
    const response = await caller.send('create_session', { tags: 'tml-secret', sdk_version: 'x', surprise: 1 });
    expect(response.status).toBe(422);
    const { detail } = (await response.json()) as { detail: string };
    expect(detail).toContain('tags');
    expect(detail).toContain('surprise: unknown key');
    expect(detail).not.toContain('tml-secret');
    expect((await caller.fetch('create_session', { method: 'POST', body: '{' })).status).toBe(422);
    const binary = {
      method: 'POST',
      body: Buffer.from([1, 2, 3]),
      headers: { 'content-type': 'application/x-protobuf' },
    };
    expect((await caller.fetch('forward_backward', binary)).status).toBe(422);
  });

  it('reads gzip, zstd where Node has it (415 where not), and nothing else', async () => {
    const { caller } = await start();
    const model = await caller.createModel(await caller.createSession());
    const bytes = encodeForwardBackwardRequest({
      modelId: model,
      seqId: 1,
      data: [datum()],
      lossFn: 'cross_entropy',
      forwardOnly: false,
    });
    const send = (body: Uint8Array, encoding: string) =>
      caller.fetch('forward_backward', {
        method: 'POST',
        body: Buffer.from(body),
        headers: { 'content-type': 'application/x-protobuf', 'content-encoding': encoding },
      });
    expect((await send(gzipSync(bytes), 'gzip')).status).toBe(200);
    const { zstdCompressSync } = zlib as unknown as { zstdCompressSync?: (bytes: Uint8Array) => Buffer };
    if (zstdCompressSync === undefined) expect((await send(bytes, 'zstd')).status).toBe(415);
    else expect((await send(zstdCompressSync(bytes), 'zstd')).status).toBe(200);
    expect((await send(bytes, 'br')).status).toBe(415);
    expect((await send(bytes, 'gzip')).status).toBe(400);
  });
});

it('shows what arrived and what was answered', async () => {
  const seen: string[] = [];
  const { caller } = await start({
    onRequest: ({ method, endpoint, json }) => seen.push(`${method} ${endpoint} ${JSON.stringify(json)}`),
    onResponse: ({ request, status }) => seen.push(`${request.endpoint} ${status}`),
  });
  await caller.send('session_heartbeat', { session_id: 'none' });
  await expect.poll(() => seen).toEqual(['POST session_heartbeat {"session_id":"none"}', 'session_heartbeat 404']);
});

it('answers samples that name a base model without a sampler', async () => {
  const { caller } = await start();
  const { sequences } = await caller.sample(sampleBody({ base_model: 'fake/model' }));
  expect(sequences).toHaveLength(1);
  expect((await caller.send('asample', sampleBody({ base_model: 'other' }))).status).toBe(404);
  expect((await caller.send('asample', sampleBody())).status).toBe(400);
});

it('describes itself to whoever started it', async () => {
  const { local } = await start({ apiKey: 'tml-mine', clockMs: 100 });
  expect(local.describe()).toContain(`export TINKER_BASE_URL=${local.url}\nexport TINKER_API_KEY=tml-mine`);
  expect(local.describe()).toContain('fake/model');
  expect(local.describe()).toContain('100 ms');
});
