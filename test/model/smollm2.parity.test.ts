/**
 * SmolLM2 computes here what it computes in Python: logits, greedy text, gradients and steps on the same dequantised weights.
 * `recorded/smollm2.json` is made by record_smollm2.py.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Engine } from '../../src/local/engine/index.js';
import type { ModelState, NamedTensor } from '../../src/local/engine/types.js';
import { openModel } from '../../src/local/weights/openModel.js';
import { smollm2File } from './smollm2File.js';
import { batch, floats, recorded } from './smollm2Recorded.js';

const file = await smollm2File();
const BASE = 'smollm2';

describe.skipIf(file === undefined)('SmolLM2 as in Python', () => {
  let engine: Engine;
  beforeAll(async () => {
    const model = await openModel({ path: file!, name: BASE });
    engine = await Engine.start({ models: [model] });
    await model.close();
    await engine.createSampler({ samplerId: 'base', baseModel: BASE });
  });
  afterAll(() => engine.close());

  it('logits of 20 prompts are within 1e-3', async () => {
    const { stride } = recorded;
    const ids = Array.from({ length: Math.ceil(49_152 / stride) }, (_, i) => i * stride);
    const differences = recorded.prompts.map(async ({ tokens, logits, logsumexp }) => {
      // Row i asks for what follows token i. One more token, so that the last one has a row too.
      const asked = Float64Array.from({ length: tokens.length * ids.length }, (_, i) => ids[i % ids.length]!);
      const { targetPromptLogprobs } = await engine.sample('base', {
        prompt: Int32Array.of(...tokens, 0),
        maxTokens: 1,
        targetPromptLogprobs: { dtype: 'int64', data: asked, shape: [tokens.length, ids.length] },
      });
      const [rows, sums] = [floats(logits), floats(logsumexp)];
      return Math.max(
        ...Array.from(targetPromptLogprobs!.data, (value, i) =>
          Math.abs(value - (rows[i]! - sums[Math.floor(i / ids.length)]!)),
        ),
      );
    });
    expect(Math.max(...(await Promise.all(differences)))).toBeLessThan(1e-3);
  });

  it('greedy continuations of 64 tokens are equal', async () => {
    const sampled = await Promise.all(
      recorded.prompts.map(({ tokens }) =>
        engine.sample('base', { prompt: Int32Array.from(tokens), maxTokens: 64, temperature: 0 }),
      ),
    );
    expect(sampled.map(({ sequences }) => [...sequences[0]!.tokens])).toEqual(
      recorded.prompts.map(({ greedy }) => greedy),
    );
  });

  it('LoRA gradients of a batch are within 1e-3 relative', async () => {
    await engine.createModel({ modelId: 'gradients', baseModel: BASE, lora: recorded.lora });
    await engine.loadState('gradients', await adapterState(engine, 'gradients', 0.01));
    const { metrics } = await engine.forwardBackward('gradients', batch(), 'cross_entropy');
    expect(metrics['loss:sum']).toBeCloseTo(recorded.gradients.loss, 2);
    // With beta1 = 0 the first moment is the gradient.
    await engine.optimStep('gradients', { learningRate: 0, beta1: 0 });
    const { optimizer } = await engine.exportState('gradients');
    const wrong = Object.entries(recorded.gradients.factors).flatMap(([name, { norm, first }]) => {
      const { data } = optimizer!.m[name]!;
      const here = Math.hypot(...chunked(data));
      const entries = first.map((value, i) => Math.abs(data[i]! - value));
      const scale = norm / Math.sqrt(data.length);
      return Math.abs(here - norm) < 1e-3 * norm &&
        Math.max(...entries) < 1e-3 * (scale + Math.max(...first.map(Math.abs)))
        ? []
        : [[name, here, norm, first, [...data.subarray(0, 4)]]];
    });
    expect(wrong).toEqual([]);
    await engine.disposeModel('gradients');
  });

  it("ten steps of AdamW have peft's losses within 1e-2", async () => {
    await engine.createModel({ modelId: 'steps', baseModel: BASE, lora: recorded.lora });
    await engine.loadState('steps', await adapterState(engine, 'steps', 0));
    const losses: number[] = [];
    for (const _ of recorded.losses) {
      const { metrics } = await engine.forwardBackward('steps', batch(), 'cross_entropy');
      await engine.optimStep('steps', recorded.adam);
      losses.push(metrics['loss:sum']!);
    }
    const relative = losses.map((loss, i) => Math.abs(loss - recorded.losses[i]!) / recorded.losses[i]!);
    expect([Math.max(...relative) < 1e-2, losses]).toEqual([true, losses]);
    await engine.disposeModel('steps');
  });
});

/** The norm of each thousand values: `Math.hypot` takes no million arguments. */
const chunked = (data: Float32Array): number[] =>
  Array.from({ length: Math.ceil(data.length / 1000) }, (_, i) =>
    Math.sqrt(data.subarray(1000 * i, 1000 * (i + 1)).reduce((sum, value) => sum + value * value, 0)),
  );

/** The adapter of record_smollm2.py: factor i of the sorted names is `uniform(i + 1)`. */
async function adapterState(engine: Engine, modelId: string, sizeOfB: number): Promise<ModelState> {
  const state = await engine.exportState(modelId);
  const names = Object.keys(state.weights).sort();
  const weights = names.map((name, index): [string, NamedTensor] => {
    const { shape } = state.weights[name]!;
    const scale = Math.fround(name.includes('lora_A') ? 2 / Math.sqrt(shape[1]!) : sizeOfB);
    return [name, { shape, data: uniform(index + 1, shape).map((value) => scale * value) }];
  });
  return { ...state, weights: Object.fromEntries(weights) };
}

function uniform(seed: number, shape: readonly number[]): Float32Array {
  const start = Math.imul(seed, 0x9e3779b9);
  return Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, index) => {
    let bits = Math.imul(index + start, 0x85ebca6b);
    bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
    bits ^= bits >>> 16;
    return (bits >>> 0) / 2 ** 32 - 0.5;
  });
}
