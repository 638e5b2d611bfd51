import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ModelInput, ServiceClient, type Datum, type TinkerEvent } from 'tinker-rx';
import { LocalTinker } from 'tinker-rx/local';

const text = (words: string): Int32Array => Int32Array.from(Buffer.from(words));
const datum = (words: string): Datum => {
  const tokens = text(words);
  return {
    modelInput: ModelInput.fromInts(tokens.subarray(0, -1)),
    lossFnInputs: { target_tokens: tokens.subarray(1), weights: new Float32Array(tokens.length - 1).fill(1) },
  };
};
const DATA = ['the sea is blue', 'grass is green today', 'snow is white'].map(datum);

describe.each(['tinker', 'skyrl'] as const)('against the embedded service as %s', (dialect) => {
  let local: LocalTinker;
  let service: ServiceClient;
  const events: TinkerEvent[] = [];

  beforeAll(async () => {
    local = await LocalTinker.start({ dialect });
    service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, logLevel: 'silent' });
    service.events$.subscribe((event) => events.push(event));
  });
  afterAll(async () => {
    await service.close();
    await local.close();
  });

  it('creates, trains with a falling loss, saves, resumes and samples', async () => {
    const { supportedModels } = await service.getServerCapabilities();
    expect(service.sessionId).toBeUndefined();
    const baseModel = supportedModels[0]!.modelName!;
    const trainer = await service.createLoraTrainingClient({ baseModel, rank: 8, seed: 1 });
    const passes = [];
    for (let step = 0; step < 10; step++) {
      passes.push(trainer.forwardBackward(DATA, 'cross_entropy'));
      void trainer.optimStep({ learningRate: 5e-3 }).subscribe();
    }
    const losses: number[] = [];
    for (const pass of passes) losses.push(lossOf(await pass));
    expect(losses.at(-1)!).toBeLessThan(losses[0]! * 0.8);
    expect(events.find((event) => event.type === 'protocol-chosen')).toMatchObject({
      format: dialect === 'tinker' ? 'protobuf' : 'json',
    });

    const { path } = await trainer.saveState('ten');
    const resumed = await service.createTrainingClientFromStateWithOptimizer(path);
    expect(lossOf(await resumed.forward(DATA, 'cross_entropy'))).toBe(
      lossOf(await trainer.forward(DATA, 'cross_entropy')),
    );

    const custom = await trainer.forwardBackwardCustom(DATA, (data, logprobs) => ({
      loss: -logprobs.flatMap((row) => [...row]).reduce((sum, logprob) => sum + logprob, 0),
      gradients: logprobs.map((row) => new Float32Array(row.length).fill(-1)),
      metrics: { datums: data.length },
    }));
    expect(custom.metrics['datums']).toBe(3);
    expect(custom.metrics['loss:sum']).toBeCloseTo(lossOf(await trainer.forward(DATA, 'cross_entropy')), 3);

    const sampler = await trainer.saveWeightsAndGetSamplingClient();
    const { sequences } = await sampler.sample({
      prompt: ModelInput.fromInts(text('the sea')),
      numSamples: 2,
      samplingParams: { maxTokens: 5, temperature: 0 },
    });
    expect(sequences).toHaveLength(2);
    expect(sequences[0]!.tokens).toHaveLength(5);
    expect(sequences[0]!.logprobs).toHaveLength(5);
    const logprobs = await sampler.computeLogprobs(ModelInput.fromInts(text('the sea')));
    expect(logprobs).toHaveLength(7);
    expect(logprobs[0]).toBeNaN();
    expect(logprobs[1]).toBeLessThan(0);
    expect(await sampler.getBaseModel()).toBe(baseModel);
  });
});

const lossOf = (output: {
  metrics: Readonly<Record<string, number>>;
  lossFnOutputs: readonly Readonly<Record<string, { data: ArrayLike<number> }>>[];
}): number =>
  output.metrics['loss:sum'] ??
  output.lossFnOutputs.reduce((sum, row) => sum - Array.from(row['logprobs']!.data).reduce((a, b) => a + b, 0), 0);
