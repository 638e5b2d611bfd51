import { afterEach, describe, expect, it } from 'vitest';
import {
  Engine,
  EngineCancelledError,
  EngineClosedError,
  EngineUserError,
  encodeText,
  type LossFunction,
} from '../../../src/local/engine/index.js';
import { textDatum } from './engineModel.js';

const TINY = 'tinker-rx/tiny';
const DATA = ['The cat sat on the mat.', 'Two and two are four.'].map((text) => textDatum(encodeText(text)));

let engines: Engine[] = [];
async function start(): Promise<Engine> {
  const engine = await Engine.start();
  engines.push(engine);
  return engine;
}

async function startWithModel(): Promise<Engine> {
  const engine = await start();
  await engine.createModel({ modelId: 'm', baseModel: TINY, lora: { rank: 8 } });
  return engine;
}

afterEach(async () => {
  await Promise.all(engines.map((engine) => engine.close()));
  engines = [];
});

describe('Engine', () => {
  it('names its base models', async () => {
    const { baseModels } = await start();
    expect(baseModels.map(({ name }) => name)).toEqual([TINY, 'tinker-rx/small']);
    expect(
      baseModels.every(({ contextLength, vocabularySize }) => contextLength >= 1024 && vocabularySize === 264),
    ).toBe(true);
  });

  it('runs the calls on a model in the order they were made, without waiting between them', async () => {
    const engine = await startWithModel();
    const calls = Array.from({ length: 4 }, () => {
      const result = engine.forwardBackward('m', DATA, 'cross_entropy');
      void engine.optimStep('m', { learningRate: 0.01 });
      return result;
    });
    const losses = (await Promise.all(calls)).map(({ metrics }) => metrics['loss:sum']!);
    expect(losses).toStrictEqual([...losses].sort((a, b) => b - a));
    expect(new Set(losses).size).toBe(4);
  });

  it('samples from the weights as they were when the sampler was made', async () => {
    const engine = await startWithModel();
    void engine.forwardBackward('m', DATA, 'cross_entropy');
    void engine.optimStep('m', { learningRate: 0.05 });
    const saved = engine.exportState('m', { optimizer: false });
    await engine.createSampler({ samplerId: 'live', modelId: 'm' });
    void engine.forwardBackward('m', DATA, 'cross_entropy');
    void engine.optimStep('m', { learningRate: 0.05 });
    await engine.createSampler({ samplerId: 'later', modelId: 'm' });
    await engine.createSampler({ samplerId: 'saved', state: await saved });
    await engine.createSampler({ samplerId: 'base', baseModel: TINY });
    await engine.disposeModel('m');
    const scores = async (samplerId: string) => {
      const { promptLogprobs } = await engine.sample(samplerId, {
        prompt: encodeText('The cat'),
        maxTokens: 1,
        promptLogprobs: true,
      });
      return promptLogprobs!;
    };
    const [live, later, fromState, base] = await Promise.all(['live', 'later', 'saved', 'base'].map(scores));
    expect(live).toStrictEqual(fromState);
    expect(live).not.toStrictEqual(later);
    expect(live).not.toStrictEqual(base);
  });

  it('leaves the event loop free while it trains', async () => {
    const engine = await startWithModel();
    const long = Array.from({ length: 40 }, (_, index) => textDatum(encodeText(`${index} `.repeat(100))));
    let training = true;
    const done = engine.forwardBackward('m', long, 'cross_entropy').finally(() => (training = false));
    // Had the engine's work run here, there would be about one turn for each of the 40 datums.
    let turns = 0;
    for (; training; turns++) await new Promise((resolve) => setImmediate(resolve));
    await done;
    expect(turns).toBeGreaterThan(200);
  });

  it('cancels a sample by its signal, before, while it waits, and while it runs', async () => {
    const engine = await start();
    await engine.createSampler({ samplerId: 's', baseModel: TINY });
    const request = { prompt: encodeText('Once'), numSamples: 64, maxTokens: 2000, stop: [] };
    const signals = [new AbortController(), new AbortController(), new AbortController()];
    signals[0]!.abort();
    const samples = signals.map(({ signal }) => engine.sample('s', request, { signal }));
    setTimeout(() => signals.forEach((controller) => controller.abort()), 30);
    await Promise.all(samples.map((sample) => expect(sample).rejects.toThrow(EngineCancelledError)));
    const { sequences } = await engine.sample('s', { ...request, numSamples: 1, maxTokens: 3 });
    expect(sequences[0]!.tokens.length).toBe(3);
  });

  it('passes user errors on as such', async () => {
    const engine = await startWithModel();
    const again = engine.createModel({ modelId: 'm', baseModel: TINY, lora: { rank: 8 } });
    await expect(again).rejects.toThrow(EngineUserError);
    await expect(again).rejects.toThrow('model m exists already');
    await expect(engine.optimStep('other')).rejects.toThrow('there is no model other');
    await expect(engine.sample('other', { prompt: Int32Array.of(1) })).rejects.toThrow(EngineUserError);
    await expect(engine.forwardBackward('m', DATA, 'none')).rejects.toThrow(EngineUserError);
  });

  it('rejects what waits when it is closed, and what comes after', async () => {
    const engine = await startWithModel();
    const waiting = [engine.forwardBackward('m', DATA, 'cross_entropy'), engine.optimStep('m')];
    const ends = waiting.map((call) => expect(call).rejects.toThrow(EngineClosedError));
    await Promise.all([engine.close(), engine.close(), ...ends]);
    await expect(engine.optimStep('m')).rejects.toThrow(EngineClosedError);
  });
});

describe('a loss given as a function', () => {
  /** Cross entropy, spelled out. */
  const crossEntropy: LossFunction = (logprobs, inputs) => {
    const weights = inputs['weights']!.data;
    let loss = 0;
    logprobs.data.forEach((p: number, i: number) => (loss -= p * weights[i]!));
    return {
      loss,
      gradient: Float32Array.from(weights, (weight) => -weight),
      metrics: { 'custom/tokens:sum': weights.length, 'custom/half:mean': 0.5 },
    };
  };

  it('trains exactly as the built-in loss it spells out', async () => {
    const [custom, builtIn] = [await startWithModel(), await startWithModel()];
    for (let step = 0; step < 3; step++) {
      const a = await custom.forwardBackward('m', DATA, crossEntropy);
      const b = await builtIn.forwardBackward('m', DATA, 'cross_entropy');
      expect(a.outputs).toStrictEqual(b.outputs);
      expect(a.metrics['loss:sum']).toBeCloseTo(b.metrics['loss:sum']!, 4);
      const tokens = DATA.reduce((sum, { tokens: { length } }) => sum + length, 0);
      expect(a.metrics).toMatchObject({ 'custom/tokens:sum': tokens, 'custom/half:mean': 0.5 });
      expect(await custom.optimStep('m', { learningRate: 0.01 })).toStrictEqual(
        await builtIn.optimStep('m', { learningRate: 0.01 }),
      );
    }
    expect(await custom.exportState('m')).toStrictEqual(await builtIn.exportState('m'));
  });

  it('holds the turn: a step called after it lands after it', async () => {
    const engine = await startWithModel();
    const slow: LossFunction = async (...args) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return crossEntropy(...args);
    };
    const backward = engine.forwardBackward('m', DATA, slow);
    const { metrics } = await engine.optimStep('m');
    expect(metrics['unclipped_grad_l2:mean']).toBeGreaterThan(0);
    await backward;
  });

  it('gathers nothing when it throws, gives too few derivatives, or only forward is asked', async () => {
    const engine = await startWithModel();
    const broken = () => {
      throw new RangeError('broken');
    };
    await expect(engine.forwardBackward('m', DATA, broken)).rejects.toThrow(RangeError);
    const short = () => ({ loss: 0, gradient: new Float32Array(1) });
    await expect(engine.forwardBackward('m', DATA, short)).rejects.toThrow(
      'datum 0: the loss gave 1 derivatives for 22',
    );
    await engine.forwardBackward('m', DATA, crossEntropy, {}, { forwardOnly: true });
    expect((await engine.optimStep('m')).metrics).toEqual({ 'unclipped_grad_l2:mean': 0 });
  });
});
