/**
 * The client against a live service: `TINKER_API_KEY=… npm run test:live`, with TINKER_BASE_URL for another service than the
 * hosted one and TINKER_LIVE_MODEL for another model than the smallest one known. It trains a LoRA of rank 4 on three lines
 * for a few steps, samples a few tokens, and deletes the checkpoints it has made.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  isLeft,
  ModelInput,
  ServiceClient,
  type Datum,
  type ForwardBackwardOutput,
  type SamplingClient,
  type TinkerEvent,
  type TrainingClient,
} from 'tinker-rx';

const hasKey = (process.env['TINKER_API_KEY'] ?? '') !== '';
if (!hasKey) console.warn('test:live is skipped: TINKER_API_KEY is not set');

/** Small ones first; which of them there are, the service says. */
const SMALL = [
  'tinker-rx/tiny',
  'meta-llama/Llama-3.2-1B',
  'meta-llama/Llama-3.2-3B',
  'Qwen/Qwen3-4B-Instruct-2507',
  'Qwen/Qwen3-8B',
];
/** Ids that every tokenizer has. */
const tokensOf = (words: string): Int32Array => Int32Array.from(Buffer.from(words));
const datum = (words: string): Datum => {
  const tokens = tokensOf(words);
  return {
    modelInput: ModelInput.fromInts(tokens.subarray(0, -1)),
    lossFnInputs: { target_tokens: tokens.subarray(1), weights: new Float32Array(tokens.length - 1).fill(1) },
  };
};
const DATA = ['the sea is blue', 'grass is green today', 'snow is white'].map(datum);
const prompt = ModelInput.fromInts(tokensOf('the sea is'));
const samplingParams = { maxTokens: 8, temperature: 0.7, seed: 1 };
/** The loss where the service tells it; else from the logprobs, as some tell only those. */
const lossOf = ({ metrics, lossFnOutputs }: ForwardBackwardOutput): number =>
  metrics['loss:sum'] ??
  -lossFnOutputs
    .flatMap((output) => [...output['logprobs']!.toDense().data].map(Number))
    .reduce((sum, p) => sum + p, 0);

describe.skipIf(!hasKey)('the client against a live service', () => {
  const events: TinkerEvent[] = [];
  const name = `tinker-rx-live-${process.pid}`;
  const saved: string[] = [];
  let service: ServiceClient;
  let model: string;
  let trainer: TrainingClient;
  let sampler: SamplingClient;

  beforeAll(() => {
    service = new ServiceClient({ displayName: name });
    service.events$.subscribe((event) => events.push(event));
  });
  afterAll(async () => {
    for (const path of saved) await service.rest.deleteCheckpointFromTinkerPath(path).catch(() => undefined);
    await service.close();
    expect(events.some(({ type }) => type === 'session-finished')).toBe(true);
  });

  it('says which models it has, without a session', async () => {
    const { supportedModels } = await service.getServerCapabilities();
    const names = supportedModels.filter(({ trainable }) => trainable !== false).map(({ modelName }) => modelName);
    model = process.env['TINKER_LIVE_MODEL'] ?? SMALL.find((small) => names.includes(small)) ?? names[0] ?? '';
    expect(names).toContain(model);
    expect(service.sessionId).toBeUndefined();
  });

  it('makes a model and describes it', async () => {
    trainer = await service.createLoraTrainingClient({ baseModel: model, rank: 4, seed: 1, userMetadata: { name } });
    const { modelId } = await trainer.getInfo();
    expect(modelId).toBe(trainer.modelId);
  });

  it('trains in order, pipelined, with a falling loss', async () => {
    const passes = [];
    for (let step = 0; step < 4; step++) {
      passes.push(trainer.forwardBackward(DATA, 'cross_entropy'));
      trainer.optimStep({ learningRate: 5e-3 }).subscribe();
    }
    const losses = [];
    for (const pass of passes) losses.push(lossOf(await pass));
    expect(losses.at(-1)!).toBeLessThan(losses[0]!);
  });

  it('runs a loss of one’s own', async () => {
    const custom = await trainer.forwardBackwardCustom(DATA, (data, logprobs) => ({
      loss: -logprobs.flatMap((row) => [...row]).reduce((sum, logprob) => sum + logprob, 0),
      gradients: logprobs.map((row) => new Float32Array(row.length).fill(-1)),
      metrics: { datums: data.length },
    }));
    expect(custom.metrics).toMatchObject({ datums: 3, 'loss:sum': expect.any(Number) as number });
    await trainer.optimStep({ learningRate: 0 });
  });

  it('saves a state, lists it, and starts from it with the same loss', async () => {
    const { path } = await trainer.saveState(name, { ttlSeconds: 3600 });
    saved.push(path);
    const { checkpoints } = await service.rest.listCheckpoints(trainer.modelId);
    expect(checkpoints.map(({ tinkerPath }) => tinkerPath)).toContain(path);
    const resumed = await service.createTrainingClientFromStateWithOptimizer(path);
    const [before, after] = [trainer.forward(DATA, 'cross_entropy'), resumed.forward(DATA, 'cross_entropy')];
    const loss = lossOf(await before);
    expect(Math.abs(lossOf(await after) - loss)).toBeLessThan(0.02 * Math.abs(loss) + 0.01);
  });

  it('samples from the trained weights, with logprobs, and scores a prompt', async () => {
    sampler = await trainer.saveWeightsAndGetSamplingClient();
    const { sequences } = await sampler.sample({ prompt, numSamples: 2, samplingParams });
    expect(sequences).toHaveLength(2);
    for (const { tokens, logprobs } of sequences) expect(logprobs).toHaveLength(tokens.length);
    const scores = await sampler.computeLogprobs(prompt);
    expect(scores).toHaveLength(prompt.length);
    expect([...scores.subarray(1)].every((score) => score <= 0)).toBe(true);
  });

  it('samples from the base model, many at once', async () => {
    const base = await service.createSamplingClient({ baseModel: model });
    const responses = await Promise.all(
      Array.from({ length: 32 }, () => base.sample({ prompt, samplingParams: { maxTokens: 2 } })),
    );
    expect(responses.every(({ sequences }) => sequences.length === 1)).toBe(true);
  });

  it('says what is wrong with what it refuses, and goes on', async () => {
    const refused = await sampler.sample({ prompt, samplingParams: { maxTokens: 10_000_000 } }).either();
    const missing = await service.createTrainingClientFromState('tinker://nobody/weights/nothing').either();
    expect(isLeft(missing) && missing.left.message).toBeTruthy();
    if (isLeft(refused)) expect(refused.left.message).not.toBe('');
    expect((await sampler.sample({ prompt, samplingParams })).sequences).toHaveLength(1);
  });

  it('gives up on a call when it is told to', async () => {
    const controller = new AbortController();
    const sample = sampler.sample({ prompt, samplingParams: { maxTokens: 2000 }, signal: controller.signal });
    controller.abort();
    await expect(sample).rejects.toMatchObject({ code: 'cancelled' });
  });
});
