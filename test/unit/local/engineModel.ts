/** A small model with fixed weights, shared by the engine's tests. */
import { initialWeights, adapterLayout, resolveLora } from '../../../src/local/engine/model/adapter.js';
import { randomBaseWeights } from '../../../src/local/engine/model/baseModel.js';
import { EngineCore } from '../../../src/local/engine/thread/core.js';
import { createRandom } from '../../../src/local/engine/numeric/random.js';
import type { ModelShape } from '../../../src/local/engine/model/shapes.js';
import type { EngineDatum, EngineTensor, LoraOptions, ModelState } from '../../../src/local/engine/types.js';

export const SHAPE: ModelShape = {
  name: 'test/model',
  layers: 2,
  width: 24,
  heads: 2,
  hidden: 36,
  vocabulary: 264,
  context: 256,
};

export const createCore = (shape: ModelShape = SHAPE) =>
  new EngineCore([{ shape, weights: randomBaseWeights(shape, 7) }]);

/** `count` pseudo-random tokens below `limit`. */
export function someTokens(count: number, seed: number, limit = 264): Int32Array {
  const random = createRandom(seed, 99);
  return Int32Array.from({ length: count }, () => Math.floor(random.uniform() * limit));
}

export const floats = (values: ArrayLike<number>, shape: readonly number[] = [values.length]): EngineTensor => ({
  dtype: 'float32',
  data: Float32Array.from(values),
  shape,
});

export const ints = (values: ArrayLike<number>, shape: readonly number[] = [values.length]): EngineTensor => ({
  dtype: 'int64',
  data: Int32Array.from(values),
  shape,
});

/** A text to be learned: every token predicts the next, all weighted 1. */
export function textDatum(tokens: Int32Array): EngineDatum {
  const rows = tokens.length - 1;
  return {
    tokens: tokens.slice(0, rows),
    inputs: { target_tokens: ints(tokens.slice(1)), weights: floats(new Float32Array(rows).fill(1)) },
  };
}

/** A state whose B factors are not zero, so that every gradient is. */
export function busyState(lora: LoraOptions, seed: number, shape: ModelShape = SHAPE): ModelState {
  const resolved = resolveLora(lora);
  const layout = adapterLayout(shape, resolved);
  const flat = initialWeights(layout);
  const random = createRandom(seed, 5);
  const weights: Record<string, { shape: readonly number[]; data: Float32Array }> = {};
  for (const { name, inputs, outputs, a, b } of layout.slots) {
    weights[`base_model.model.${name}.lora_A.weight`] = { shape: [resolved.rank, inputs], data: flat.slice(a, b) };
    weights[`base_model.model.${name}.lora_B.weight`] = {
      shape: [outputs, resolved.rank],
      data: Float32Array.from({ length: outputs * resolved.rank }, () => 0.05 * random.normal()),
    };
  }
  return { baseModel: shape.name, lora: resolved, step: 0, weights };
}
