import { describe, expect, it } from 'vitest';
import { closeAfterEach, datum, jsonDatum, soon, start } from './localFixture.js';
import type { Json } from './localCaller.js';

closeAfterEach();

const bodyOf = async (response: Response): Promise<Json> => (await response.json()) as Json;

describe('the order of training work', () => {
  it('runs by seq_id whatever the order of arrival, the first chunk last', async () => {
    const { caller, engine } = await start();
    const model = await caller.createModel(await caller.createSession());
    await caller.submitPass(model, 3, [datum(3)]);
    await caller.submitPass(model, 2, [datum(2)]);
    const step = caller.future('optim_step', { model_id: model, seq_id: 4, adam_params: {} });
    await soon();
    expect(engine.log).toEqual([`create ${model}`]);
    await caller.submitPass(model, 1, [datum(1)]);
    await step;
    expect(engine.log.slice(1)).toEqual([
      'forward_backward 1',
      'forward_backward 2',
      'forward_backward 3',
      'optim_step 1',
    ]);
  });

  it('tells whoever polls a request behind a gap what it waits for', async () => {
    const { caller } = await start({ pollHoldMs: 30, tryAgainAs: 'body' });
    const model = await caller.createModel(await caller.createSession());
    const { request_id: id } = await bodyOf(await caller.submitPass(model, 2, [datum()]));
    expect(await caller.post('retrieve_future', { request_id: id })).toEqual({
      type: 'try_again',
      request_id: id,
      queue_state: 'active',
      queue_state_reason: 'waiting for seq_id 1',
    });
  });

  it('gives the same request the same future, in JSON and in protobuf, and runs it once', async () => {
    const { caller, engine } = await start();
    const model = await caller.createModel(await caller.createSession());
    const first = await bodyOf(await caller.submitPass(model, 1, [datum()]));
    const again = await bodyOf(await caller.submitPass(model, 1, [datum()]));
    const asJson = await caller.post('forward_backward', {
      model_id: model,
      seq_id: 1,
      forward_backward_input: { data: [jsonDatum()], loss_fn: 'cross_entropy' },
    });
    expect(again).toEqual(first);
    expect(asJson).toEqual(first);
    await caller.result(first['request_id'] as string);
    expect(engine.log.filter((entry) => entry.startsWith('forward_backward'))).toHaveLength(1);
  });

  it('refuses other content under a used seq_id with 409', async () => {
    const { caller } = await start();
    const model = await caller.createModel(await caller.createSession());
    await caller.submitPass(model, 1, [datum(3)]);
    expect((await caller.submitPass(model, 1, [datum(4)])).status).toBe(409);
    const step = { model_id: model, seq_id: 1, adam_params: {} };
    expect((await caller.send('optim_step', step)).status).toBe(409);
    expect((await caller.submitPass(model, 0, [datum()])).status).toBe(422);
  });

  it('lets a failed operation fail alone and keeps its place in the order', async () => {
    const { caller, engine } = await start();
    const model = await caller.createModel(await caller.createSession());
    const failing = await bodyOf(await caller.submitPass(model, 1, [datum()], { lossFn: 'dro' }));
    const next = await caller.future('optim_step', { model_id: model, seq_id: 2, adam_params: {} });
    expect(await caller.result(failing['request_id'] as string)).toEqual({ error: 'no loss dro', category: 'user' });
    expect(next).toMatchObject({ metrics: { 'unclipped_grad_l2:mean': 1 } });
    expect(engine.log.at(-1)).toBe('optim_step 1');
  });

  it('makes a model once for the same request and refuses another under the same number', async () => {
    const { caller, engine } = await start();
    const session = await caller.createSession();
    const request = {
      session_id: session,
      model_seq_id: 0,
      base_model: 'fake/model',
      lora_config: { rank: 4 },
    };
    const first = await caller.post('create_model', request);
    expect(await caller.post('create_model', request)).toEqual(first);
    expect((await caller.send('create_model', { ...request, lora_config: { rank: 8 } })).status).toBe(409);
    await caller.result(first['request_id'] as string);
    expect(engine.log).toEqual([`create ${session}:train:0`]);
  });
});

describe('the lock-step clock', () => {
  it('runs a forward-backward and the optimizer step submitted with it in one cycle', async () => {
    const { caller, local } = await start();
    const model = await caller.createModel(await caller.createSession());
    local.dials.clockMs = 250;
    const cycles: number[] = [];
    for (let step = 0; step < 3; step++) {
      const pass = caller.forwardBackward(model, 2 * step + 1, [datum()]);
      const optim = caller.future('optim_step', { model_id: model, seq_id: 2 * step + 2, adam_params: {} });
      const [{ metrics }] = await Promise.all([pass, optim]);
      cycles.push(metrics['clock_cycle:unique']!);
    }
    expect(cycles[1]! - cycles[0]!).toBe(1);
    expect(cycles[2]! - cycles[1]!).toBe(1);
  });

  it('takes a cycle for each step of a client that waits before it sends the next', async () => {
    const { caller, local } = await start();
    const model = await caller.createModel(await caller.createSession());
    local.dials.clockMs = 40;
    const first = await caller.forwardBackward(model, 1, [datum()]);
    await caller.future('optim_step', { model_id: model, seq_id: 2, adam_params: {} });
    const second = await caller.forwardBackward(model, 3, [datum()]);
    const [a, b] = [first.metrics['clock_cycle:unique']!, second.metrics['clock_cycle:unique']!];
    expect(b - a).toBeGreaterThanOrEqual(2);
  });

  it('runs the work of several models in the same cycle', async () => {
    const { caller, local } = await start();
    const session = await caller.createSession();
    const models = [
      await caller.createModel(session, { rank: 1 }, 0),
      await caller.createModel(session, { rank: 1 }, 1),
    ];
    local.dials.clockMs = 250;
    const outputs = await Promise.all(models.map((model) => caller.forwardBackward(model, 1, [datum()])));
    expect(outputs[0]!.metrics['clock_cycle:unique']).toBe(outputs[1]!.metrics['clock_cycle:unique']);
  });
});
