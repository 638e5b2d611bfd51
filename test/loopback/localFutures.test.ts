import { describe, expect, it, vi } from 'vitest';
import { decodeForwardBackwardOutput } from '../../src/wire/index.js';
import { closeAfterEach, datum, sampleBody, soon, start, type Fixture } from './localFixture.js';
import type { Json } from './localCaller.js';

closeAfterEach();

const PROTOBUF = 'application/x-protobuf';

async function withSampler(fixture: Fixture): Promise<string> {
  const session = await fixture.caller.createSession();
  const answer = await fixture.caller.post('create_sampling_session', {
    session_id: session,
    sampling_session_seq_id: 0,
    base_model: 'fake/model',
  });
  return answer['sampling_session_id'] as string;
}

describe('retrieve_future', () => {
  it('holds the poll until the work is done', async () => {
    const { caller, engine } = await start();
    const session = await caller.createSession();
    engine.hold();
    const created = caller.createModel(session);
    await soon(60);
    engine.release();
    expect(await created).toBe(`${session}:train:0`);
  });

  it.each([
    ['status', 408],
    ['body', 200],
  ] as const)('says "not yet" as %s after the hold', async (tryAgainAs, status) => {
    const { caller, engine } = await start({ pollHoldMs: 20, tryAgainAs });
    const session = await caller.createSession();
    engine.hold();
    const { request_id: id } = await caller.post('create_model', {
      session_id: session,
      model_seq_id: 0,
      base_model: 'fake/model',
      lora_config: { rank: 1 },
    });
    const response = await caller.send('retrieve_future', { request_id: id });
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ type: 'try_again', request_id: id, queue_state: 'active' });
    engine.release();
  });

  it('answers protobuf or JSON as the Accept header asks', async () => {
    const { caller } = await start();
    const model = await caller.createModel(await caller.createSession());
    const { request_id: id } = (await (await caller.submitPass(model, 1, [datum(2)])).json()) as Json;
    const binary = await caller.poll(id as string, { accept: PROTOBUF });
    expect(binary.headers.get('content-type')).toBe(PROTOBUF);
    const output = decodeForwardBackwardOutput(new Uint8Array(await binary.arrayBuffer()));
    expect(output.lossFnOutputs[0]!['logprobs']!.toArray()).toHaveLength(2);
    const text = await caller.poll(id as string);
    expect(text.headers.get('content-type')).toBe('application/json');
    expect(await text.json()).toMatchObject({
      loss_fn_output_type: 'ArrayRecord',
      loss_fn_outputs: [{ logprobs: { dtype: 'float32', shape: [2] } }],
      metrics: { 'loss:sum': 1, 'clock_cycle:unique': output.metrics['clock_cycle:unique'] },
    });
  });

  it('announces a large result by its size where the client allows it', async () => {
    const { caller } = await start({ metadataOnlyBytes: 100 });
    const model = await caller.createModel(await caller.createSession());
    const { request_id: id } = (await (await caller.submitPass(model, 1, [datum(60)])).json()) as Json;
    const announced = (await (await caller.poll(id as string, { accept: PROTOBUF }, true)).json()) as Json;
    expect(announced).toMatchObject({ status: 'complete_metadata' });
    const whole = await caller.poll(id as string, { accept: PROTOBUF });
    expect((await whole.arrayBuffer()).byteLength).toBe(announced['response_payload_size']);
  });

  it('knows a forgotten promise (410) from one that never was (404)', async () => {
    const fixture = await start({ futureTtlMs: 0 });
    const sampler = await withSampler(fixture);
    const { request_id: id } = await fixture.caller.post(
      'asample',
      sampleBody({ sampling_session_id: sampler, seq_id: 0 }),
    );
    // A result is forgotten when the next one arrives.
    let seqId = 1;
    await vi.waitFor(
      async () => {
        await fixture.caller.post('asample', sampleBody({ sampling_session_id: sampler, seq_id: seqId++ }));
        expect((await fixture.caller.send('retrieve_future', { request_id: id })).status).toBe(410);
      },
      { timeout: 240_000 },
    );
    expect((await fixture.caller.send('retrieve_future', { request_id: 'nonsense' })).status).toBe(404);
    const [nonce] = (id as string).split('-');
    expect((await fixture.caller.send('retrieve_future', { request_id: `${nonce}-99` })).status).toBe(404);
  });

  it('keeps results up to a size and forgets the oldest first', async () => {
    const { caller } = await start({ maxResultBytes: 8000 });
    const model = await caller.createModel(await caller.createSession());
    const ids: string[] = [];
    for (let seqId = 1; seqId <= 6; seqId++) {
      const { request_id: id } = (await (await caller.submitPass(model, seqId, [datum(400)])).json()) as Json;
      ids.push(id as string);
      await (await caller.poll(id as string)).arrayBuffer();
    }
    const status = async (id: string) => (await caller.send('retrieve_future', { request_id: id })).status;
    expect(await status(ids[0]!)).toBe(410);
    expect(await status(ids.at(-1)!)).toBe(200);
  });

  it('treats the promises of an earlier process as forgotten', async () => {
    const { caller } = await start();
    expect((await caller.send('retrieve_future', { request_id: 'aabbccddeeff-3' })).status).toBe(410);
  });

  it('stops waiting when the client goes away', async () => {
    const { caller, engine } = await start();
    const session = await caller.createSession();
    engine.hold();
    const abort = new AbortController();
    const created = await caller.post('create_model', {
      session_id: session,
      model_seq_id: 0,
      base_model: 'fake/model',
      lora_config: { rank: 1 },
    });
    const poll = caller.fetch('retrieve_future', {
      method: 'POST',
      body: JSON.stringify({ request_id: created['request_id'] }),
      signal: abort.signal,
    });
    await soon();
    abort.abort();
    await expect(poll).rejects.toThrow(/abort/);
    engine.release();
    expect(await caller.result(created['request_id'] as string)).toMatchObject({ model_id: `${session}:train:0` });
  });
});

describe('samples', () => {
  it('promises one sequence id a sample and stamps them on the JSON result', async () => {
    const fixture = await start();
    const sampler = await withSampler(fixture);
    const promise = await fixture.caller.post(
      'asample',
      sampleBody({ sampling_session_id: sampler, seq_id: 0, num_samples: 3 }),
    );
    const ids = promise['sample_sequence_ids'] as string[];
    expect(new Set(ids).size).toBe(3);
    const { sequences } = await fixture.caller.result(promise['request_id'] as string);
    expect((sequences as Json[]).map((sequence) => sequence['sequence_id'])).toEqual(ids);
  });

  it('keeps the order of a clone apart by all digits of its seq_id', async () => {
    const fixture = await start();
    const sampler = await withSampler(fixture);
    const send = (digits: string) =>
      fixture.caller
        .fetch('asample', {
          method: 'POST',
          body: JSON.stringify(sampleBody({ sampling_session_id: sampler, seq_id: 0 })).replace(
            '"seq_id":0',
            `"seq_id":${digits}`,
          ),
        })
        .then((response) => response.json() as Promise<Json>);
    const first = await send('999999999000000001');
    const second = await send('999999999000000002');
    const again = await send('999999999000000001');
    expect(second['request_id']).not.toBe(first['request_id']);
    expect(again['request_id']).toBe(first['request_id']);
    const poll = await fixture.caller.post('retrieve_futures', {
      target: { sampling_session_id: sampler, cloned_sampler_id: 999_999_999 },
      prev_cursor: 0,
    });
    expect(poll['cursor']).toBeGreaterThanOrEqual(1);
  });

  it('gives a repeated sample the same future and refuses other content under its number', async () => {
    const fixture = await start();
    const sampler = await withSampler(fixture);
    const body = sampleBody({ sampling_session_id: sampler, seq_id: 0 });
    const first = await fixture.caller.post('asample', body);
    expect(await fixture.caller.post('asample', body)).toEqual(first);
    expect((await fixture.caller.send('asample', { ...body, num_samples: 2 })).status).toBe(409);
  });

  it('cancels a running sample, which then fails, and takes a finished one without complaint', async () => {
    const fixture = await start();
    const sampler = await withSampler(fixture);
    fixture.engine.hold();
    const { request_id: id } = await fixture.caller.post(
      'asample',
      sampleBody({ sampling_session_id: sampler, seq_id: 0 }),
    );
    expect((await fixture.caller.send('cancel_future', { request_id: id })).status).toBe(204);
    expect(await fixture.caller.result(id as string)).toEqual({ error: 'the sample was cancelled', category: 'user' });
    fixture.engine.release();
    await soon();
    expect((await fixture.caller.send('cancel_future', { request_id: id })).status).toBe(204);
    expect((await fixture.caller.send('cancel_future', { request_id: 'nonsense' })).status).toBe(404);
  });

  it('does not cancel training work', async () => {
    const { caller } = await start();
    const model = await caller.createModel(await caller.createSession());
    const { request_id: id } = (await (await caller.submitPass(model, 1, [datum()])).json()) as Json;
    expect((await caller.send('cancel_future', { request_id: id })).status).toBe(400);
  });
});

describe('the session poller', () => {
  it('reports what finished after the cursor, with its size, and forgets what was fetched', async () => {
    const fixture = await start();
    const sampler = await withSampler(fixture);
    const { caller, engine } = fixture;
    const poll = (fields: Json) =>
      caller.post('retrieve_futures', {
        target: { type: 'sampling_session', sampling_session_id: sampler },
        ...fields,
      });
    const submit = async (seqId: number, fields: Json = {}) =>
      (await caller.post('asample', sampleBody({ sampling_session_id: sampler, seq_id: seqId, ...fields })))[
        'request_id'
      ] as string;

    engine.hold();
    const first = await submit(0);
    const waiting = poll({ prev_cursor: 0 });
    engine.release();
    const report = await waiting;
    const [completion] = report['completions'] as Json[];
    expect(completion).toMatchObject({ state: 'finished', request_id: first });
    const fetched = await caller.poll(first, { accept: PROTOBUF });
    expect((await fetched.arrayBuffer()).byteLength).toBe(completion!['response_payload_uncompressed_size']);

    const second = await submit(1, {
      prompt: { chunks: [{ type: 'image', data: 'AAAA', format: 'png', expected_tokens: 1 }] },
    });
    const next = await poll({ prev_cursor: report['cursor'], retrieved_request_ids: [first] });
    expect(next['completions']).toEqual([{ state: 'failed', request_id: second }]);
    expect((await caller.send('retrieve_future', { request_id: first })).status).toBe(410);
    expect(await caller.result(second)).toMatchObject({ category: 'user' });
  });

  it('gives every clone its own log', async () => {
    const fixture = await start();
    const sampler = await withSampler(fixture);
    const { caller } = fixture;
    expect(await caller.post('join_sampling_session', { sampling_session_id: sampler })).toEqual({ client_counter: 1 });
    expect(await caller.post('join_sampling_session', { sampling_session_id: sampler })).toEqual({ client_counter: 2 });
    const { request_id: id } = await caller.post(
      'asample',
      sampleBody({ sampling_session_id: sampler, seq_id: 2_000_000_000 }),
    );
    await caller.result(id as string);
    const poll = (clone: number) =>
      caller.post('retrieve_futures', {
        target: { sampling_session_id: sampler, cloned_sampler_id: clone },
        timeout: 0.02,
      });
    expect(await poll(1)).toEqual({ completions: [], cursor: 0 });
    expect((await poll(2))['completions']).toHaveLength(1);
  });
});
