import { describe, expect, it } from 'vitest';
import type { Json } from './localCaller.js';
import { closeAfterEach, datum, jsonDatum, sampleBody, start } from './localFixture.js';

// Written by hand after the source of the PyPI package skyrl 0.3.0 (skyrl/tinker/api.py) and PROTOCOL's list.
closeAfterEach();

const skyrl = () => start({ dialect: 'skyrl' });
const pass = (model: string, fields: Json = {}, data: Json[] = [jsonDatum()]) => ({
  model_id: model,
  forward_backward_input: { data, loss_fn: 'cross_entropy', ...fields },
});

describe('the JSON-only dialect', () => {
  it('knows no protobuf: 422 for bytes that are text, 500 as plain text for others', async () => {
    const { caller } = await skyrl();
    const model = await caller.createModel(await caller.createSession());
    const crashed = await caller.submitPass(model, 1, [datum(200)]);
    expect([crashed.status, crashed.headers.get('content-type'), await crashed.text()]).toEqual([
      500,
      'text/plain',
      'Internal Server Error',
    ]);
    const refused = await caller.fetch('forward_backward', {
      method: 'POST',
      body: 'plain text',
      headers: { 'content-type': 'application/x-protobuf' },
    });
    expect(refused.status).toBe(422);
    expect(await refused.json()).toEqual({ detail: [expect.objectContaining({ loc: ['body', 'body'] }) as Json] });
  });

  it('answers passes in JSON whatever is accepted, with the loss of each token and no metrics', async () => {
    const { caller } = await skyrl();
    const model = await caller.createModel(await caller.createSession());
    expect(model).toMatch(/^model_[0-9a-f]{8}$/);
    const promise = await caller.post('forward_backward', pass(model));
    expect(promise).toEqual({ request_id: promise['request_id'], future_id: promise['request_id'], status: 'pending' });
    const response = await caller.poll(promise['request_id'] as string, { accept: 'application/x-protobuf' });
    expect(response.headers.get('content-type')).toBe('application/json');
    const result = (await response.json()) as Json;
    expect(result).toMatchObject({ loss_fn_output_type: 'scalar', metrics: {} });
    const [output] = result['loss_fn_outputs'] as Record<string, { data: number[]; shape: number[] }>[];
    expect(output!['elementwise_loss']!.data).toEqual(output!['logprobs']!.data.map((p) => -p));
    const forward = { model_id: model, forward_input: { data: [jsonDatum()], loss_fn: 'cross_entropy' } };
    expect(await caller.future('forward', forward)).toMatchObject({ loss_fn_output_type: 'scalar' });
  });

  it('runs by arrival and knows no seq_id', async () => {
    const { caller, engine } = await skyrl();
    const model = await caller.createModel(await caller.createSession());
    const step = (seqId: number) => caller.post('optim_step', { model_id: model, seq_id: seqId, adam_params: {} });
    const [first, second] = [await step(5), await step(5)];
    expect(first['request_id']).not.toBe(second['request_id']);
    await caller.result(second['request_id'] as string);
    expect(engine.log.slice(1)).toEqual(['optim_step 1', 'optim_step 2']);
  });

  it('answers a failed operation with 400 and a detail', async () => {
    const { caller } = await skyrl();
    const model = await caller.createModel(await caller.createSession());
    const broken = jsonDatum();
    (broken['loss_fn_inputs'] as Json)['weights'] = { data: [1], dtype: 'float32', shape: [1] };
    const { request_id: id } = await caller.post('forward_backward', pass(model, {}, [broken]));
    const response = await caller.send('retrieve_future', { request_id: id });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ detail: expect.stringContaining('weights') as string });
  });

  it('never settles a pass without data, and goes on with the next', async () => {
    const { caller } = await start({ dialect: 'skyrl', pollHoldMs: 30 });
    const model = await caller.createModel(await caller.createSession());
    const { request_id: id } = await caller.post('forward_backward', pass(model, {}, []));
    await caller.future('optim_step', { model_id: model, adam_params: {} });
    const response = await caller.send('retrieve_future', { request_id: id });
    expect([response.status, await response.json()]).toEqual([408, { detail: 'Timeout waiting for result' }]);
  });

  it('refuses losses and options it does not have', async () => {
    const { caller } = await skyrl();
    const model = await caller.createModel(await caller.createSession());
    expect((await caller.send('forward_backward', pass(model, { loss_fn: 'dro' }))).status).toBe(422);
    const config = { loss_fn_config: { beta: 1 } };
    expect((await caller.send('forward_backward', pass(model, config))).status).toBe(422);
  });

  it('samples without sequence ids, wants max_tokens and a list of stops, and scores one token less', async () => {
    const { caller } = await skyrl();
    const session = await caller.createSession();
    const { sampling_session_id: sampler } = await caller.post('create_sampling_session', {
      session_id: session,
      sampling_session_seq_id: 0,
      base_model: 'fake/model',
    });
    expect(sampler).toMatch(/^sampling_[0-9a-f]{8}$/);
    const body = sampleBody({ sampling_session_id: sampler, seq_id: 0, prompt_logprobs: true });
    const promise = await caller.post('asample', body);
    expect(promise).not.toHaveProperty('sample_sequence_ids');
    const result = await caller.result(promise['request_id'] as string);
    expect(result['prompt_logprobs']).toEqual([-1, -1]);
    expect((result['sequences'] as Json[])[0]).not.toHaveProperty('sequence_id');
    expect((await caller.send('asample', { ...body, sampling_params: {} })).status).toBe(400);
    expect((await caller.send('asample', { ...body, sampling_params: { max_tokens: 1, stop: 'x' } })).status).toBe(422);
  });

  it('saves under plain names, once, and lists times without a zone', async () => {
    const { caller } = await skyrl();
    const model = await caller.createModel(await caller.createSession());
    const saved = await caller.future('save_weights', { model_id: model, path: 'a' });
    expect(saved).toMatchObject({ path: `tinker://${model}/weights/a` });
    expect((await caller.send('save_weights', { model_id: model, path: 'a' })).status).toBe(409);
    expect((await caller.send('save_weights', { model_id: model, path: 'a.b' })).status).toBe(422);
    const { checkpoints } = await caller.get(`training_runs/${model}/checkpoints`);
    expect(checkpoints).toEqual([
      {
        checkpoint_id: 'a',
        checkpoint_type: 'training',
        time: expect.stringMatching(/^[\d-]+T[\d:.]+$/) as string,
        tinker_path: `tinker://${model}/weights/a`,
      },
    ]);
    const run = await caller.get(`training_runs/${model}`);
    expect(run['last_request_time']).toMatch(/^[\d-]+T[\d:.]+$/);
    expect(await caller.post('weights_info', { tinker_path: saved['path'] })).toEqual({
      base_model: 'fake/model',
      is_lora: true,
      lora_rank: 4,
    });
    const archive = await caller.fetch(`training_runs/${model}/checkpoints/a/archive`, { redirect: 'manual' });
    expect(archive.status).toBe(302);
  });

  it('has its own small config and lacks what it lacks', async () => {
    const { caller } = await skyrl();
    expect(await caller.post('client/config', { sdk_version: 'x' })).toEqual({ pjwt_auth_enabled: false });
    expect(await caller.get('get_server_capabilities')).toEqual({ supported_models: [{ model_name: 'fake/model' }] });
    const session = await caller.createSession();
    const missing = [
      'client/dynamic_config',
      'retrieve_futures',
      'cancel_future',
      'create_custom_loss',
      'join_sampling_session',
      'copy_weights',
      'save_weights_external',
      'auth/token',
      `sessions/${session}/finish`,
      'sessions/search',
    ];
    for (const path of missing) expect((await caller.send(path, {})).status, path).toBe(404);
    expect((await caller.fetch('sessions')).status).toBe(404);
    expect((await caller.send('retrieve_future', { request_id: '99' })).status).toBe(404);
    expect((await caller.send('get_info', { model_id: 'none' })).status).toBe(404);
  });
});
