import { describe, expect, it } from 'vitest';
import type { TinkerEvent } from 'tinker-rx';
import { refusal } from 'tinker-rx/testing';
import { datum, prompt, stage } from './stage.js';

const kinds = (on: ReturnType<typeof stage>) =>
  [...on.service.pending().calls].map(({ requestType, target, requestId }) => [requestType, target, requestId]);

describe('pending work', () => {
  it('is every call from when it is made to its end, with its id once it is accepted', () => {
    const on = stage({ latencyMs: 100 });
    const model = on.trainer();
    const sampler = on.sampler();
    expect(kinds(on)).toEqual([]);
    const pass = model.forwardBackward([datum()], 'cross_entropy');
    const optim = model.optimStep();
    const sample = sampler.sample({ prompt: prompt(), samplingParams: { maxTokens: 1 } });
    const info = model.getInfo();
    const { modelId } = model;
    expect(kinds(on)).toEqual([
      ['ForwardBackward', modelId, undefined],
      ['OptimStep', modelId, undefined],
      ['Sample', sampler.samplingSessionId, undefined],
      [undefined, undefined, undefined],
    ]);
    on.clock.resolve(info);
    expect(kinds(on)).toEqual([
      ['ForwardBackward', modelId, pass.requestId],
      ['OptimStep', modelId, undefined],
      ['Sample', sampler.samplingSessionId, sample.requestId],
    ]);
    expect(pass.requestId).toBeDefined();
    on.clock.resolve(optim);
    expect(kinds(on)).toEqual([]);
  });

  it('has the budgets that the service gave, and what is taken of them', () => {
    const on = stage({ latencyMs: 100, config: { sampleDispatchBytesSemaphoreSize: 5 } });
    expect(on.service.pending().budgets).toBeUndefined();
    const sampler = on.sampler();
    const samples = [1, 2, 3].map(() => sampler.sample({ prompt: prompt(), samplingParams: { maxTokens: 1 } }));
    const { sampleBytes, sampleSlots, trainingBytes } = on.service.pending().budgets!;
    expect(sampleSlots).toEqual({ inUse: 1, size: 400, waiting: 2 });
    expect(sampleBytes).toMatchObject({ size: 5, waiting: 2 });
    expect(sampleBytes.inUse).toBeGreaterThan(5);
    expect(trainingBytes).toEqual({ inUse: 0, size: 50_000_000, waiting: 0 });
    on.clock.resolve(samples[2]!);
    expect(on.service.pending().budgets!.sampleBytes).toEqual({ inUse: 0, size: 5, waiting: 0 });
  });

  it('is named by the events of its retries and of its failure', () => {
    const on = stage({ script: { forward_backward: [refusal(503, 'down'), refusal(400, 'bad')] } });
    const events: TinkerEvent[] = [];
    on.service.events$.subscribe((event) => events.push(event));
    const model = on.trainer();
    on.clock.reject(model.forwardBackward([datum()], 'cross_entropy'));
    on.clock.reject(model.saveState(''));
    const work = { requestType: 'ForwardBackward', target: model.modelId };
    const told = events.filter(({ type }) => type === 'request-retry' || type === 'request-failed');
    expect(told).toMatchObject([
      { type: 'request-retry', ...work, path: 'forward_backward' },
      { type: 'request-failed', ...work, error: { code: 'bad_request' } },
      { type: 'request-failed', requestType: 'SaveWeights', target: model.modelId, error: { code: 'invalid_input' } },
    ]);
  });
});
