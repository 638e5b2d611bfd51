import { describe, expect, it } from 'vitest';
import { CustomLossError, type CustomLossFn, type CustomLossResult, type Datum, type TensorData } from 'tinker-rx';
import { json } from 'tinker-rx/testing';
import { datum, stage, trainingSends } from './stage.js';

const withAdvantages = (length: number): Datum => ({
  ...datum(length),
  lossFnInputs: { target_tokens: new Int32Array(length).fill(7), advantages: new Float32Array(length).fill(2) },
});
const constant =
  (gradient: number): CustomLossFn =>
  (data, logprobs) => ({
    loss: 42,
    gradients: logprobs.map((row) => new Float32Array(row.length).fill(gradient)),
    metrics: { datums: data.length },
  });

describe('a custom loss run here', () => {
  it('is given the logprobs of a forward pass and sends its gradient as weights', () => {
    const on = stage();
    const seen: [readonly Datum[], readonly Float32Array[]][] = [];
    const loss: CustomLossFn = (data, logprobs) => {
      seen.push([data, logprobs]);
      return constant(0.5)(data, logprobs);
    };
    const output = on.clock.resolve(on.trainer().forwardBackwardCustom([withAdvantages(2), withAdvantages(3)], loss));
    const [forward, backward] = on.fake.to('forward_backward').map(({ pass }) => pass!);
    expect([forward!.forwardOnly, backward!.forwardOnly]).toEqual([true, false]);
    expect([forward!.lossFn, backward!.lossFn]).toEqual(['cross_entropy', 'cross_entropy']);
    expect([forward!.seqId, backward!.seqId]).toEqual([1, 2]);
    expect(seen[0]![1].map((row) => [...row])).toEqual([
      [-1, -1],
      [-1, -1, -1],
    ]);
    expect([...(seen[0]![0][0]!.lossFnInputs['advantages'] as TensorData).data]).toEqual([2, 2]);
    for (const pass of [forward!, backward!])
      expect(Object.keys(pass.data[0]!.lossFnInputs).sort()).toEqual(['target_tokens', 'weights']);
    expect([...forward!.data[0]!.lossFnInputs['weights']!.data]).toEqual([0, 0]);
    expect([...backward!.data[1]!.lossFnInputs['weights']!.data]).toEqual([-0.5, -0.5, -0.5]);
    expect(output.metrics).toEqual({ 'loss:sum': 42, 'surrogate_loss:sum': 5, datums: 2 });
  });

  it('holds its turn from forward to backward', () => {
    const on = stage({ latencyMs: 100, workMs: ({ path }) => (path === 'forward_backward' ? 1000 : 0) });
    const model = on.trainer();
    const startMs = on.clock.now();
    model.forwardBackwardCustom([datum()], constant(1));
    on.clock.resolve(model.optimStep());
    expect(trainingSends(on.fake)).toEqual([
      `forward_backward#1@${startMs}`,
      `forward_backward#2@${startMs + 1100}`,
      `optim_step#3@${startMs + 1200}`,
    ]);
  });

  it('that throws gives up its turn: later calls run, and no number is lost', () => {
    const on = stage();
    const model = on.trainer();
    const cause = new Error('division by zero');
    const failing = model.forwardBackwardCustom([datum()], () => {
      throw cause;
    });
    const step = model.optimStep();
    const error = on.clock.reject(failing);
    expect(error).toBeInstanceOf(CustomLossError);
    expect(error).toMatchObject({ message: 'the custom loss threw: division by zero', cause });
    on.clock.resolve(step);
    expect(on.fake.to('optim_step').map(({ seqId }) => seqId)).toEqual([2]);
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['a promise', Promise.resolve()],
    ['a loss that is not a number', { loss: NaN, gradients: [new Float32Array(3)] }],
    ['no gradients', { loss: 1 }],
    ['too few gradients', { loss: 1, gradients: [] }],
    ['a gradient of the wrong length', { loss: 1, gradients: [new Float32Array(2)] }],
    ['a gradient that is not finite', { loss: 1, gradients: [[0, Infinity, 0]] }],
    ['a gradient with a hole', { loss: 1, gradients: [[0, , 0]] }],
  ])('that returns %s is refused before the backward pass', (_, result) => {
    const on = stage();
    const model = on.trainer();
    const error = on.clock.reject(model.forwardBackwardCustom([datum(3)], () => result as CustomLossResult));
    expect(error).toBeInstanceOf(CustomLossError);
    on.clock.resolve(model.optimStep());
    expect(trainingSends(on.fake)).toEqual(['forward_backward#1@0', 'optim_step#2@0']);
  });

  it('needs target_tokens', () => {
    const on = stage();
    const model = on.trainer();
    const bad = { ...datum(), lossFnInputs: { weights: [1, 1, 1] } };
    expect(on.clock.reject(model.forwardBackwardCustom([bad], constant(1)))).toMatchObject({ code: 'invalid_input' });
    expect(trainingSends(on.fake)).toEqual([]);
  });

  it.each<[string, object]>([
    ['no logprobs', { loss_fn_outputs: [{ elementwise_loss: { data: [1], dtype: 'float32' } }] }],
    ['fewer outputs than datums', { loss_fn_outputs: [] }],
  ])('fails with a clear error when the forward pass answers %s', (_, answer) => {
    const on = stage({ script: { 'retrieve_future Forward': [json(answer)] } });
    const model = on.trainer();
    expect(on.clock.reject(model.forwardBackwardCustom([datum()], constant(1)))).toMatchObject({
      code: 'invalid_response',
    });
    on.clock.resolve(model.optimStep());
  });
});

describe('a custom loss run by the service', () => {
  const inputs = [
    { name: 'logprobs', rank: 1 as const },
    { name: 'advantages', rank: 1 as const },
  ];
  const nodes = [
    { op: 'placeholder', name: 'logprobs', target: 'logprobs' },
    { op: 'placeholder', name: 'advantages', target: 'advantages' },
    { op: 'call_function', name: 'mul', target: 'operator.mul', args: [{ ref: 'logprobs' }, { ref: 'advantages' }] },
    { op: 'call_method', name: 'total', target: 'sum', args: [{ ref: 'mul' }] },
    { op: 'output', name: 'output', target: 'output', args: [{ tuple: [{ ref: 'total' }, { dict: {} }] }] },
  ] as const;
  const definition = { name: 'mine', inputs, graph: { nodes } };
  const supporting = (options = {}) => stage({ config: { customLossServerSide: true }, ...options });

  it('is uploaded once and then run in one pass', () => {
    const on = supporting();
    const handle = on.clock.resolve(on.service.createCustomLoss(definition));
    on.clock.resolve(on.trainer().forwardBackwardCustom([withAdvantages(3)], handle));
    expect(on.fake.to('create_custom_loss')[0]!.json).toMatchObject({
      session_id: 'session-1',
      custom_loss_seq_id: 0,
      name: 'mine',
      inputs,
      graph: { format: 1 },
    });
    const [pass] = on.fake.to('forward_backward').map((request) => request.pass!);
    expect([pass!.lossFn, pass!.lossFnConfig]).toEqual(['custom', { loss_id: 'loss-0' }]);
    expect(Object.keys(pass!.data[0]!.lossFnInputs)).toContain('advantages');
    expect(on.fake.to('forward_backward')).toHaveLength(1);
  });

  it('is refused where the service cannot run it', () => {
    const on = stage();
    const error = on.clock.reject(on.service.createCustomLoss(definition)) as Error;
    expect(error).toMatchObject({ code: 'invalid_input' });
    expect(error.message).toContain('forwardBackwardCustom');
  });

  it('is refused a second time: its handle is to be used again', () => {
    const on = supporting();
    on.clock.resolve(on.service.createCustomLoss(definition));
    expect(on.clock.reject(on.service.createCustomLoss(definition))).toMatchObject({ code: 'invalid_input' });
    expect(on.fake.to('create_custom_loss')).toHaveLength(1);
  });

  it('may be uploaded again after an upload that was cancelled', () => {
    const on = supporting({ latencyMs: 100 });
    const cancelled = on.service.createCustomLoss(definition);
    on.clock.advanceBy(350);
    expect(on.fake.to('create_custom_loss')).toHaveLength(1);
    cancelled.cancel();
    expect(on.clock.reject(cancelled)).toMatchObject({ code: 'cancelled' });
    expect(on.clock.resolve(on.service.createCustomLoss(definition))).toMatchObject({ lossId: 'loss-1' });
  });

  it('is refused in another session, and for data that lacks an input or has another rank', () => {
    const on = supporting();
    const handle = on.clock.resolve(on.service.createCustomLoss(definition));
    const model = on.trainer();
    const rank2 = {
      ...withAdvantages(2),
      lossFnInputs: {
        target_tokens: [1, 2],
        advantages: [
          [1, 2],
          [3, 4],
        ],
      },
    };
    expect(on.clock.reject(model.forwardBackwardCustom([datum()], handle))).toMatchObject({ code: 'invalid_input' });
    expect(on.clock.reject(model.forwardBackwardCustom([rank2], handle))).toMatchObject({ code: 'invalid_input' });
    const foreign = { ...handle, sessionId: 'session-2' };
    expect(on.clock.reject(model.forwardBackwardCustom([withAdvantages(3)], foreign))).toMatchObject({
      code: 'invalid_input',
    });
    expect(trainingSends(on.fake)).toEqual([]);
  });
});
