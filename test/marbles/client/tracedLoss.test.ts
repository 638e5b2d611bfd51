import { describe, expect, it } from 'vitest';
import type { Datum } from 'tinker-rx';
import { checkLoss, defineLoss, definePairLoss } from 'tinker-rx/losses';
import { json } from 'tinker-rx/testing';
import { datum, stage, trainingSends } from './stage.js';

const withInputs = (length: number, inputs: Datum['lossFnInputs'] = {}): Datum => ({
  ...datum(length),
  lossFnInputs: {
    target_tokens: new Int32Array(length).fill(7),
    advantages: new Float32Array(length).fill(2),
    ...inputs,
  },
});
/** Its gradient by each logprob is 2 · logprob · advantage; the fake's logprobs are all −1. */
const squares = defineLoss(
  ({ logprobs, advantages }, ops) => ({
    loss: ops.weightedSum(logprobs.square(), advantages),
    metrics: { seen: logprobs.mean() },
  }),
  { name: 'squares' },
);

describe('a traced loss where the service runs custom losses', () => {
  const supporting = (options: Parameters<typeof stage>[0] = {}) =>
    stage({ config: { customLossServerSide: true }, ...options });

  it('is uploaded once for all models and calls, and run in one pass', () => {
    const on = supporting();
    const [first, second] = [on.trainer(), on.trainer()];
    const same = defineLoss(
      ({ logprobs, advantages }, ops) => ({
        loss: ops.weightedSum(logprobs.square(), advantages),
        metrics: { seen: logprobs.mean() },
      }),
      { name: 'again' },
    );
    const calls = [first, second, first].map((model) => model.forwardBackwardCustom([withInputs(3)], squares));
    calls.push(second.forwardBackwardCustom([withInputs(2)], same));
    for (const call of calls) on.clock.resolve(call);
    expect(on.fake.to('create_custom_loss').map(({ json: body }) => body)).toMatchObject([
      {
        name: 'squares',
        custom_loss_seq_id: 0,
        inputs: [
          { name: 'logprobs', rank: 1 },
          { name: 'advantages', rank: 1 },
        ],
      },
    ]);
    const passes = on.fake.to('forward_backward').map(({ pass }) => pass!);
    expect(passes.map(({ lossFn, lossFnConfig, forwardOnly }) => [lossFn, lossFnConfig, forwardOnly])).toEqual(
      calls.map(() => ['custom', { loss_id: 'loss-0' }, false]),
    );
  });

  it('takes its turn at the call, though the upload comes first', () => {
    const on = supporting({ latencyMs: 100 });
    const model = on.trainer();
    const startMs = on.clock.now();
    model.forwardBackwardCustom([withInputs(3)], squares);
    on.clock.resolve(model.optimStep());
    expect(trainingSends(on.fake).map((send) => send.split('@')[0])).toEqual(['forward_backward#1', 'optim_step#2']);
    expect(on.clock.now()).toBeGreaterThan(startMs);
  });

  it('sends what the loss reads and no more, sampled logprobs as old_logprobs', () => {
    const on = supporting();
    const ratio = defineLoss(({ logprobs, old_logprobs }) => logprobs.sub(old_logprobs).exp().sum());
    on.clock.resolve(on.trainer().forwardBackwardCustom([withInputs(2, { logprobs: [-1.5, -2.5] })], ratio));
    const [pass] = on.fake.to('forward_backward').map((request) => request.pass!);
    expect(Object.keys(pass!.data[0]!.lossFnInputs).sort()).toEqual(['old_logprobs', 'target_tokens']);
  });

  it('is uploaded again for data of another rank', () => {
    const on = supporting();
    const sum = defineLoss(({ logprobs, weights }, ops) => ops.weightedSum(logprobs, weights));
    const model = on.trainer();
    const flat = withInputs(2, { weights: [1, 1] });
    const nested = { target_tokens: [[1, 2], [3, 4]], weights: [[1, 1], [1, 1]] }; // prettier-ignore
    on.clock.resolve(model.forwardBackwardCustom([flat], sum));
    on.clock.resolve(model.forwardBackwardCustom([{ ...datum(2), lossFnInputs: nested }], sum));
    const ranks = on.fake
      .to('create_custom_loss')
      .map((request) => (request.json as { inputs: { rank: number }[] }).inputs);
    expect(ranks.map(([logprobs]) => logprobs!.rank)).toEqual([1, 2]);
  });

  it.each([404, 422])('is evaluated here, with a warning, where the service answers the upload with %i', (status) => {
    const on = supporting({ script: { create_custom_loss: [json({ detail: 'no such loss' }, { status })] } });
    const model = on.trainer();
    const { metrics } = on.clock.resolve(model.forwardBackwardCustom([withInputs(2)], squares));
    on.clock.resolve(model.forwardBackwardCustom([withInputs(2)], squares));
    expect(metrics['loss:sum']).toBe(4);
    expect(on.fake.to('create_custom_loss')).toHaveLength(1);
    expect(on.eventsOf('loss-runs-here')).toMatchObject([{ target: 'squares' }]);
    expect(on.fake.to('forward_backward')).toHaveLength(4);
  });

  it('fails with the upload where that fails for another reason, and tries again the next time', () => {
    const on = supporting({ script: { create_custom_loss: [json({ detail: 'forbidden' }, { status: 403 })] } });
    const model = on.trainer();
    expect(on.clock.reject(model.forwardBackwardCustom([withInputs(2)], squares))).toMatchObject({
      code: 'permission_denied',
    });
    on.clock.resolve(model.forwardBackwardCustom([withInputs(2)], squares));
    expect(trainingSends(on.fake).map((send) => send.split('@')[0])).toEqual(['forward_backward#1']);
  });
});

describe('a traced loss where the service runs none', () => {
  it('is evaluated between a forward and a backward pass', () => {
    const on = stage();
    const output = on.clock.resolve(on.trainer().forwardBackwardCustom([withInputs(2), withInputs(1)], squares));
    const [forward, backward] = on.fake.to('forward_backward').map(({ pass }) => pass!);
    expect([forward!.forwardOnly, backward!.forwardOnly]).toEqual([true, false]);
    expect([...backward!.data[0]!.lossFnInputs['weights']!.data]).toEqual([4, 4]);
    expect(output.metrics).toEqual({ 'loss:sum': 6, 'surrogate_loss:sum': 3, 'custom/seen:mean': -1 });
    expect(on.fake.to('create_custom_loss')).toEqual([]);
  });

  it('gives the loss without gradients in one forward pass', () => {
    const on = stage();
    const { metrics } = on.clock.resolve(on.trainer().forward([withInputs(2)], squares));
    expect(metrics['loss:sum']).toBe(4);
    expect(on.fake.to('forward_backward').map(({ pass }) => pass!.forwardOnly)).toEqual([true]);
  });

  it('takes pairs, also where the service runs losses of one datum', () => {
    const on = stage({ config: { customLossServerSide: true } });
    const pair = definePairLoss(({ chosen, rejected }) => rejected.logprobs.sum().sub(chosen.logprobs.sum()));
    const { metrics } = on.clock.resolve(on.trainer().forwardBackwardCustom([withInputs(2), withInputs(3)], pair));
    expect(metrics['loss:sum']).toBe(-1);
    const backward = on.fake.to('forward_backward').at(-1)!.pass!;
    expect(backward.data.map((each) => [...each.lossFnInputs['weights']!.data])).toEqual([
      [1, 1],
      [-1, -1, -1],
    ]);
  });

  it.each<[string, readonly Datum[], string]>([
    ['an input that is missing', [datum(2)], 'data[0].lossFnInputs.advantages is missing: the loss squares takes it'],
    ['no data', [], 'data is empty'],
  ])('refuses %s before anything is sent', (_, data, message) => {
    const on = stage();
    const error = on.clock.reject(on.trainer().forwardBackwardCustom(data, squares)) as Error;
    expect(error.message).toContain(message);
    expect(trainingSends(on.fake)).toEqual([]);
  });
});

describe('checkLoss', () => {
  it('compares with finite differences, and with the trainer', () => {
    const on = stage();
    const check = on.clock.resolve(checkLoss(squares, [withInputs(3)], { trainer: on.trainer() }));
    expect(check).toMatchObject({
      ok: true,
      loss: 6,
      metrics: { 'custom/seen:mean': -1 },
      trainer: { loss: 6, error: 0 },
    });
    expect(check.worst!.error).toBeLessThan(1e-6);
    expect(on.fake.to('forward_backward').map(({ pass }) => pass!.forwardOnly)).toEqual([true, true]);
  });

  it('says that the service disagrees', () => {
    const on = stage({ config: { customLossServerSide: true } });
    const check = on.clock.resolve(checkLoss(squares, [withInputs(3)], { trainer: on.trainer() }));
    // The fake service does not know the loss: it answers the number of positions.
    expect(check).toMatchObject({ ok: false, loss: 6, trainer: { loss: 3 } });
  });
});
