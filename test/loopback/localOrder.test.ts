import { afterEach, describe, expect, it } from 'vitest';
import type { LocalTinker } from '../../src/local/index.js';
import type { ForwardBackwardOutput } from '../../src/wire/index.js';
import { closeAfterEach, datum, jsonDatum, soon, start } from './localFixture.js';
import { connect, type Json } from './localCaller.js';
import { FakeEngine } from './localFakeEngine.js';
import { startStepped } from './support/cycles.js';

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

describe('the lock-step clock, stepped by hand', () => {
  /** A service whose engine is fake, with a model; the clock stands still from here on. */
  const startModels = async (count = 1) => {
    const engine = new FakeEngine();
    const stepped = await startStepped({ engine });
    const caller = connect(stepped.local);
    const session = await caller.createSession();
    const models: string[] = [];
    for (let index = 0; index < count; index++) models.push(await caller.createModel(session, { rank: 1 }, index));
    stepped.takeOver();
    closing.push(stepped.local);
    return { ...stepped, caller, engine, models };
  };
  const closing: LocalTinker[] = [];
  afterEach(() => Promise.all(closing.splice(0).map((local) => local.close())));
  const cycle = async (pass: Promise<ForwardBackwardOutput>) => (await pass).metrics['clock_cycle:unique'];

  it('runs nothing before a step', async () => {
    const { caller, engine, local, models, until } = await startModels();
    const pass = caller.forwardBackward(models[0]!, 1, [datum()]);
    await until((count) => count('forward_backward') === 1);
    expect(engine.log).toHaveLength(1);
    await local.controls.step();
    expect(engine.log).toHaveLength(2);
    expect(await cycle(pass)).toBeGreaterThan(0);
  });

  it('runs a forward-backward and the optimizer step submitted with it in one cycle', async () => {
    const { caller, engine, local, models, until } = await startModels();
    const pass = caller.forwardBackward(models[0]!, 1, [datum()]);
    const optim = caller.future('optim_step', { model_id: models[0], seq_id: 2, adam_params: {} });
    await until((count) => count('forward_backward') === 1 && count('optim_step') === 1);
    await local.controls.step();
    await Promise.all([pass, optim]);
    expect(engine.log.slice(1)).toStrictEqual(['forward_backward 3', 'optim_step 1']);
  });

  it('counts the cycles in which a client that waits for a result has nothing queued', async () => {
    const { caller, local, models, until } = await startModels();
    const first = caller.forwardBackward(models[0]!, 1, [datum()]);
    await until((count) => count('forward_backward') === 1);
    await local.controls.step();
    await local.controls.step();
    const before = await cycle(first);
    const second = caller.forwardBackward(models[0]!, 2, [datum()]);
    await until((count) => count('forward_backward') === 2);
    await local.controls.step();
    expect(await cycle(second)).toBe(before! + 2);
  });

  it('runs the work of several models in the same cycle', async () => {
    const { caller, local, models, until } = await startModels(2);
    const passes = models.map((model) => caller.forwardBackward(model, 1, [datum()]));
    await until((count) => count('forward_backward') === 2);
    await local.controls.step();
    const [one, other] = await Promise.all(passes.map(cycle));
    expect(one).toBe(other);
  });

  it('starts no cycle while the queue is paused', async () => {
    const { caller, engine, local, models, until } = await startModels();
    const pass = caller.forwardBackward(models[0]!, 1, [datum()]);
    await until((count) => count('forward_backward') === 1);
    local.controls.pause();
    await local.controls.step();
    expect(engine.log).toHaveLength(1);
    local.controls.resume();
    await local.controls.step();
    expect(await cycle(pass)).toBeGreaterThan(0);
  });

  it('starts cycles by itself again when it gets a length', async () => {
    const { caller, local, models, until } = await startModels();
    const pass = caller.forwardBackward(models[0]!, 1, [datum()]);
    await until((count) => count('forward_backward') === 1);
    local.controls.clockMs = 1;
    expect(await cycle(pass)).toBeGreaterThan(0);
  });
});
