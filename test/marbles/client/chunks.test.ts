import { describe, expect, it } from 'vitest';
import { TensorData } from 'tinker-rx';
import type { ForwardBackwardRequest } from '../../../src/wire/training.js';
import { datum, stage, trainingSends } from './stage.js';

/** The datums of each request, by the length of their input. */
const shapes = (fake: ReturnType<typeof stage>['fake']): number[][] =>
  [...fake.to('forward_backward')]
    .sort((one, other) => one.seqId! - other.seqId!)
    .map(({ pass }) => pass!.data.map(({ modelInput }) => modelInput.length));

/** Every logprob is the number of the request that computed it. */
const numbered = ({ seqId, data }: ForwardBackwardRequest) => ({
  lossFnOutputType: 'TensorLogprobs',
  lossFnOutputs: data.map(() => ({ logprobs: TensorData.from([seqId], 'float32') })),
  metrics: { 'loss:sum': seqId, 'clock_cycle:unique': seqId },
});

describe('chunks of one pass', () => {
  it('go out in parallel with the first one last, in one turn, and come back in order', () => {
    const { clock, fake, trainer } = stage({
      latencyMs: 100,
      config: { fwdbwdMaxChunkLen: 2 },
      forwardBackward: numbered,
    });
    const model = trainer();
    const startMs = clock.now();
    const pass = model.forwardBackward([1, 2, 3, 4, 5].map(datum), 'cross_entropy');
    model.optimStep();
    const output = clock.resolve(pass);
    expect(shapes(fake)).toEqual([[1, 2], [3, 4], [5]]);
    expect(trainingSends(fake)).toEqual([
      `forward_backward#2@${startMs}`,
      `forward_backward#3@${startMs}`,
      `forward_backward#1@${startMs + 100}`,
      `optim_step#4@${startMs + 200}`,
    ]);
    expect(output.lossFnOutputs.map((one) => one['logprobs']!.data[0])).toEqual([1, 1, 2, 2, 3]);
    expect(output.metrics).toEqual({
      'loss:sum': 6,
      'clock_cycle:unique': 1,
      'clock_cycle:unique_1': 2,
      'clock_cycle:unique_2': 3,
    });
  });

  it('go out in order where the service turned parallel chunks off', () => {
    const { clock, fake, trainer } = stage({
      latencyMs: 100,
      config: { fwdbwdMaxChunkLen: 1, parallelFwdbwdChunks: false },
    });
    const model = trainer();
    const startMs = clock.now();
    clock.resolve(model.forwardBackward([1, 2, 3].map(datum), 'cross_entropy'));
    expect(trainingSends(fake)).toEqual([
      `forward_backward#1@${startMs}`,
      `forward_backward#2@${startMs + 100}`,
      `forward_backward#3@${startMs + 200}`,
    ]);
  });

  it('go out in order to a server that takes only JSON, once that is known', () => {
    const { clock, fake, trainer } = stage({ speaks: 'json', latencyMs: 100, config: { fwdbwdMaxChunkLen: 1 } });
    const model = trainer();
    clock.resolve(model.forwardBackward([datum()], 'cross_entropy'));
    const before = fake.requests.length;
    clock.resolve(model.forwardBackward([1, 2, 3].map(datum), 'cross_entropy'));
    const sent = fake.requests.slice(before).filter(({ path }) => path === 'forward_backward');
    expect(sent.map(({ seqId }) => seqId)).toEqual([2, 3, 4]);
  });

  // A datum of n tokens is estimated at 16 n bytes: 4 a token, 8 a target, 4 a weight.
  it.each([
    ['fills a chunk up to the limit', [3, 3, 3], [[3, 3], [3]]],
    ['makes a lone oversized datum one chunk', [10], [[10]]],
    ['puts no empty chunk before an oversized first datum', [10, 3, 3], [[10], [3, 3]]],
    ['puts an oversized datum between others by itself', [3, 10, 3], [[3], [10], [3]]],
  ])('%s', (_, lengths, expected) => {
    const { clock, fake, trainer } = stage({ config: { fwdbwdMaxChunkBytesCount: 96 } });
    clock.resolve(trainer().forwardBackward(lengths.map(datum), 'cross_entropy'));
    expect(shapes(fake)).toEqual(expected);
  });

  it('take their bytes from a budget that all models of the service share', () => {
    const { clock, fake, trainer } = stage({
      latencyMs: 100,
      config: { fwdbwdMaxChunkLen: 1, fwdbwdDispatchBytesSemaphoreSize: 50 },
    });
    const [one, other] = [trainer(), trainer()];
    const startMs = clock.now();
    // 48 bytes a chunk: the second overshoots, the rest wait.
    const pass = one.forwardBackward([3, 3, 3, 3].map(datum), 'cross_entropy');
    clock.resolve(other.forwardBackward([datum(3)], 'cross_entropy'));
    clock.resolve(pass);
    const sent = fake
      .to('forward_backward')
      .map(({ pass: sentPass, atMs }) => `${sentPass!.modelId.at(-1)}#${sentPass!.seqId}@${atMs - startMs}`);
    expect(sent).toEqual(['0#2@0', '0#3@0', '0#4@100', '1#1@100', '0#1@200']);
  });

  it('of a forward pass go as a forward pass', () => {
    const { clock, fake, trainer } = stage();
    clock.resolve(trainer().forward([datum()], 'cross_entropy'));
    expect(fake.to('forward_backward').map(({ pass }) => pass!.forwardOnly)).toEqual([true]);
  });

  it('of a forward pass have an endpoint of their own on a server that takes only JSON', () => {
    const { clock, fake, trainer } = stage({ speaks: 'json' });
    clock.resolve(trainer().forward([datum()], 'cross_entropy'));
    expect(fake.to('forward').map(({ pass }) => pass!.seqId)).toEqual([1]);
  });
});
