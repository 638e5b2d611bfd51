import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { randomBaseWeights } from '../../../src/local/engine/model/baseModel.js';
import type { ModelShape } from '../../../src/local/engine/model/shapes.js';
import { headRows } from '../../../src/local/engine/model/tapeMemory.js';
import { EngineCore, type CoreOptions } from '../../../src/local/engine/thread/core.js';
import type { EngineDatum, ModelState, NamedTensor } from '../../../src/local/engine/types.js';
import type { StoredTensor } from '../../../src/local/weights/OpenedModel.js';
import { busyState, floats, ints, someTokens, textDatum } from './engineModel.js';

const LLAMA: ModelShape = {
  name: 'test/llama',
  layers: 3,
  width: 24,
  heads: 6,
  keyValueHeads: 2,
  headWidth: 8,
  hidden: 36,
  vocabulary: 320,
  context: 512,
  tiedHead: true,
  ropeBase: 100_000,
  normEps: 1e-6,
};
const LLAMA_3 = { factor: 8, lowFrequencyFactor: 1, highFrequencyFactor: 4, originalContext: 32 };
const SHAPES: readonly ModelShape[] = [
  LLAMA,
  { ...LLAMA, name: 'test/llama3', ropeScaling: LLAMA_3, tiedHead: false },
  { ...LLAMA, name: 'test/qwen2', attentionBias: true },
  { ...LLAMA, name: 'test/qwen3', queryKeyNorms: true },
];
const WIDE: ModelShape = { ...LLAMA, name: 'test/wide', layers: 1, vocabulary: 65_536 };
const LORA = { rank: 3, seed: 4 };
const CE = { name: 'cross_entropy', config: {} };

/** Random weights; biases and gains are not 0 and 1, so that their place matters. */
function weightsOf(shape: ModelShape): Record<string, NamedTensor> {
  const weights = randomBaseWeights(shape, 7);
  for (const [name, { data, shape: size }] of Object.entries(weights)) {
    if (size.length === 1) data.forEach((value, i) => (data[i] = value + 0.3 * Math.sin(i + name.length)));
  }
  return weights;
}

const coreOf = (shape: ModelShape, options: CoreOptions = {}, weights = weightsOf(shape)) =>
  new EngineCore([{ shape, weights }], options);

async function gradientsOf(core: EngineCore, state: ModelState, data: EngineDatum[], loss = CE) {
  core.loadState('m', state, false);
  const { outputs } = await core.forwardBackward('m', data, loss, false);
  // Without memory Adam's first moment is the gradient itself.
  core.optimStep('m', { learningRate: 0, beta1: 0 });
  return {
    logprobs: outputs.map((output) => output['logprobs']!.data),
    gradients: core.exportState('m', true).optimizer!.m,
  };
}

async function expectTrueGradients(core: EngineCore, shape: ModelShape, data: EngineDatum[], loss = CE, only = /./) {
  core.createModel('m', shape.name, LORA);
  const state = busyState(LORA, 11, shape);
  const { gradients } = await gradientsOf(core, state, data, loss);
  const lossAt = async (tensor: string, by: (i: number) => number) => {
    const { shape: size, data: values } = state.weights[tensor]!;
    const moved = { shape: size, data: values.map((value, i) => value + by(i)) };
    core.loadState('m', { ...state, weights: { ...state.weights, [tensor]: moved } }, false);
    return (await core.forwardBackward('m', data, loss, true)).metrics['loss:sum']!;
  };
  for (const [tensor, { data: gradient }] of Object.entries(gradients)) {
    if (!only.test(tensor)) continue;
    const norm = Math.sqrt(gradient.reduce((sum, value) => sum + value * value, 0));
    expect(norm, tensor).toBeGreaterThan(0);
    const step = 2e-3;
    const up = await lossAt(tensor, (i) => (step * gradient[i]!) / norm);
    const down = await lossAt(tensor, (i) => (-step * gradient[i]!) / norm);
    expect(Math.abs((up - down) / (2 * step) / norm - 1), `${tensor} of norm ${norm}`).toBeLessThan(0.02);
  }
}

describe('models of other shapes', () => {
  it.each(SHAPES.map((shape) => [shape.name, shape] as const))(
    '%s: gradients agree with finite differences in every adapted matrix',
    (_, shape) =>
      expectTrueGradients(coreOf(shape), shape, [textDatum(someTokens(22, 1)), textDatum(someTokens(70, 2))]),
  );

  it.each(SHAPES.map((shape) => [shape.name, shape] as const))(
    '%s: sampling one token at a time gives the logprobs of a whole pass, bit for bit',
    async (_, shape) => {
      const core = coreOf(shape);
      core.createModel('m', shape.name, LORA);
      core.loadState('m', busyState(LORA, 5, shape), false);
      core.createSampler('s', { modelId: 'm' });
      const prompt = someTokens(9, 3);
      const { sequences } = await core.sample('s', { prompt, maxTokens: 20, stop: [], seed: 1 }).result;
      const all = Int32Array.of(...prompt, ...sequences[0]!.tokens);
      const { outputs } = await core.forwardBackward('m', [textDatum(all)], CE, true);
      expect(outputs[0]!['logprobs']!.data.slice(prompt.length - 1)).toStrictEqual(sequences[0]!.logprobs);
    },
  );

  it('weights in bf16 give the numbers of the same weights in float32', async () => {
    const shape = SHAPES[2]!;
    const weights = weightsOf(shape);
    const halves: Record<string, StoredTensor> = {};
    for (const [name, { shape: size, data }] of Object.entries(weights)) {
      const half = new Uint16Array(data.buffer).filter((_, i) => i % 2 === 1);
      halves[name] = { shape: size, dtype: 'bf16', data: half };
      new Uint32Array(data.buffer).forEach((bits, i, all) => (all[i] = bits & 0xffff_0000));
    }
    const run = async (core: EngineCore) => {
      core.createModel('m', shape.name, LORA);
      return gradientsOf(core, busyState(LORA, 2, shape), [textDatum(someTokens(40, 1))]);
    };
    const widened = coreOf(shape);
    widened.beginBase({ ...shape, name: 'half' }, 'bf16');
    for (const [name, tensor] of Object.entries(halves)) widened.putTensor('half', name, tensor);
    widened.finishBase('half', { endTokens: [] });
    widened.createModel('m', 'half', LORA);
    const state = { ...busyState(LORA, 2, shape), baseModel: 'half' };
    const exact = await run(coreOf(shape, {}, weights));
    const half = await gradientsOf(widened, state, [textDatum(someTokens(40, 1))]);
    // A loaded model may round products and sums once.
    exact.logprobs[0]!.forEach((p, i) => expect(half.logprobs[0]![i]).toBeCloseTo(p, 4));
  });
});

describe('the loss over a large vocabulary', () => {
  const rows = 2 * headRows(WIDE) + 20;
  const tokens = someTokens(rows + 1, 1, WIDE.vocabulary);

  it('has true gradients where the logits are computed a few rows at a time', async () => {
    await expectTrueGradients(coreOf(WIDE), WIDE, [textDatum(tokens)], CE, /lm_head|q_proj/);
  });

  it('has true gradients where a token depends on all others', async () => {
    const ones = floats(new Float32Array(rows).fill(1));
    const targets = tokens.slice(1);
    const inputs = {
      target_tokens: ints(targets),
      logprobs: floats(new Float32Array(rows).fill(-11)),
      advantages: ones,
    };
    const datum = { tokens: tokens.slice(0, rows), inputs: { ...inputs, sequence_ratio_mask: ones } };
    const loss = { name: 'gspo', config: { clip_low_threshold: 1e-9, clip_high_threshold: 1e9 } };
    await expectTrueGradients(coreOf(WIDE), WIDE, [datum], loss, /lm_head|q_proj/);
  });

  it('never holds the logits of all tokens', async () => {
    const core = coreOf(WIDE);
    core.createModel('m', WIDE.name, LORA);
    await core.forwardBackward('m', [textDatum(tokens.slice(0, 20))], CE, false);
    const few = core.heap.bytes;
    await core.forwardBackward('m', [textDatum(tokens)], CE, false);
    expect(core.heap.bytes - few).toBeLessThan(2 * 4 * headRows(WIDE) * WIDE.vocabulary);
    expect(core.heap.bytes).toBeLessThan(4 * rows * WIDE.vocabulary);
  });
});

describe('memory', () => {
  it('layers that are computed again give the same bits as layers that were kept', async () => {
    const shape = SHAPES[3]!;
    const run = async (activationBytes: number | undefined) => {
      const core = coreOf(shape, { activationBytes });
      core.createModel('m', shape.name, LORA);
      const result = await gradientsOf(core, busyState(LORA, 2, shape), [textDatum(someTokens(100, 1))]);
      return { result, bytes: core.heap.bytes };
    };
    const [kept, none, some] = [await run(undefined), await run(0), await run(150_000)];
    expect(none.result).toStrictEqual(kept.result);
    expect(some.result).toStrictEqual(kept.result);
  });

  it('a pass that does not fit is refused before it starts, and says what it needs', async () => {
    const core = coreOf(LLAMA, { memoryBytes: 3 * 2 ** 20 });
    core.createModel('m', LLAMA.name, LORA);
    const long = core.forwardBackward('m', [textDatum(someTokens(20, 2)), textDatum(someTokens(512, 1))], CE, false);
    await expect(long).rejects.toThrow(
      /a pass over 511 tokens at rank 3 needs \d+ MiB of memory beside .* limit is 3 MiB/,
    );
    await core.forwardBackward('m', [textDatum(someTokens(20, 2))], CE, false);
  });

  it('a model that does not fit is refused before a tensor is read', () => {
    const core = coreOf(LLAMA, { memoryBytes: 16 * 2 ** 20 });
    const large = { ...LLAMA, name: 'large', layers: 1000, width: 512 };
    expect(() => core.beginBase(large, 'bf16')).toThrow(/large in bf16 needs \d+ MiB of memory .* limit is 16 MiB/);
  });
});

describe('prompts that begin alike', () => {
  it('are computed once, with the same numbers as alone', async () => {
    const prompt = someTokens(60, 1);
    const longer = Int32Array.of(...prompt, ...someTokens(5, 2));
    const other = Int32Array.of(...prompt.subarray(0, 40), ...someTokens(9, 3));
    const ask = { maxTokens: 12, seed: 3, stop: [], temperature: 1 };
    const alone = async (tokens: Int32Array, more: object = {}) => {
      const core = coreOf(LLAMA);
      core.createSampler('s', { baseModel: LLAMA.name });
      return core.sample('s', { prompt: tokens, ...ask, ...more }).result;
    };
    const core = coreOf(LLAMA);
    core.createSampler('s', { baseModel: LLAMA.name });
    const sample = (tokens: Int32Array, more: object = {}) =>
      core.sample('s', { prompt: tokens, ...ask, ...more }).result;
    const first = await sample(prompt);
    expect(first.promptCacheHitTokens).toBe(0);
    const scored = { promptLogprobs: true, promptLogprobsLastN: 20 };
    const cases = [
      [prompt, {}, 60],
      [longer, {}, 60],
      [other, {}, 40],
      [longer, scored, 44],
      [prompt, { promptLogprobs: true }, 0],
    ] as const;
    for (const [tokens, more, hits] of cases) {
      const { promptCacheHitTokens, ...result } = await sample(tokens, more);
      const { promptCacheHitTokens: _, ...expected } = await alone(tokens, more);
      expect(result).toStrictEqual(expected);
      expect(promptCacheHitTokens).toBe(hits);
    }
    // Another sampler has other weights.
    core.createSampler('t', { baseModel: LLAMA.name });
    expect((await core.sample('t', { prompt, ...ask }).result).promptCacheHitTokens).toBe(0);
  });
});

describe('stop texts of a model whose tokens are several bytes', () => {
  it('stop where the text is complete within a token, also across tokens', async () => {
    const core = coreOf(LLAMA);
    const bytes = new TextEncoder();
    const words = Array.from({ length: LLAMA.vocabulary }, (_, id) => bytes.encode(`<${id}>`));
    const shape = { ...LLAMA, name: 'worded' };
    core.beginBase(shape, 'f32');
    for (const [name, tensor] of Object.entries(weightsOf(LLAMA)))
      core.putTensor('worded', name, { ...tensor, dtype: 'f32' });
    core.finishBase('worded', { endTokens: [319], bytesOf: (token) => words[token]! });
    core.createSampler('s', { baseModel: 'worded' });
    const sample = (stop: readonly string[]) =>
      core
        .sample('s', { prompt: someTokens(5, 1), maxTokens: 10, seed: 1, stop })
        .result.then((result) => result.sequences[0]!);
    const free = await sample(['never']);
    expect(free.stopReason).toBe('length');
    const [a, b, c] = free.tokens;
    expect([...(await sample([`${a}><${b}`])).tokens]).toEqual([a, b]);
    expect([...(await sample([`${b}><${c}>`])).tokens]).toEqual([a, b, c]);
  });
});

/** Starts the further threads of a core as the engine's own thread does. */
async function withThreads(shape: ModelShape, threads: number): Promise<EngineCore> {
  const core = coreOf(shape, { threads });
  const module = new URL('../../../src/local/engine/thread/worker.source.mjs', import.meta.url);
  const workers = Array.from({ length: threads - 1 }, (_, index) => {
    const worker = new Worker(module, { workerData: { team: core.heap.team, thread: index + 1 }, execArgv: [] });
    worker.unref();
    return once(worker, 'message');
  });
  await Promise.all(workers);
  return core;
}

describe('threads', () => {
  it('give the same bits, one, two or four of them: logprobs, gradients and samples', async () => {
    const shape = { ...SHAPES[3]!, attentionBias: true };
    const run = async (threads: number) => {
      const core = await withThreads(shape, threads);
      core.createModel('m', shape.name, LORA);
      const trained = await gradientsOf(core, busyState(LORA, 2, shape), [
        textDatum(someTokens(130, 1)),
        textDatum(someTokens(9, 2)),
      ]);
      core.createSampler('s', { modelId: 'm' });
      const ask = { prompt: someTokens(70, 4), numSamples: 3, maxTokens: 20, stop: [], seed: 1, topkPromptLogprobs: 3 };
      return { trained, sampled: await core.sample('s', ask).result };
    };
    const one = await run(1);
    expect(await run(2)).toStrictEqual(one);
    expect(await run(4)).toStrictEqual(one);
  });
});
