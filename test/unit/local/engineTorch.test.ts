/** Against numbers PyTorch gave: test/parity/torch_losses.py writes the file, and says how. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { adamStep, createAdamState, resolveAdam } from '../../../src/local/engine/training/adamw.js';
import { EngineCore } from '../../../src/local/engine/thread/core.js';
import { findLoss } from '../../../src/local/engine/training/losses.js';
import { LossInputs } from '../../../src/local/engine/training/lossInputs.js';
import { baseTensors, linearShapes, type ModelShape } from '../../../src/local/engine/model/shapes.js';
import type { AdamOptions, LossConfig, NamedTensor } from '../../../src/local/engine/types.js';
import { floats, textDatum } from './engineModel.js';

interface Recorded {
  losses: {
    name: string;
    config: LossConfig;
    logprobs: number[];
    inputs: Record<string, number[]>;
    loss: number;
    gradient: number[];
  }[];
  optimizers: {
    options: AdamOptions;
    start: number[];
    steps: { gradient: number[]; norm: number; weights: number[]; m: number[]; v: number[] }[];
  }[];
  model: {
    shape: Omit<ModelShape, 'name'>;
    rank: number;
    tokens: number[];
    logprobs: number[];
    loss: number;
    gradients: Record<string, number[]>;
  };
}

const file = new URL('../../parity/recorded/torch_losses.json', import.meta.url);
const recorded = JSON.parse(readFileSync(file, 'utf8')) as Recorded;

/** As in the script: what both sides make from an index. */
const wave = (shape: readonly number[], phase: number, amplitude: number, offset = 0): NamedTensor => ({
  shape,
  data: Float32Array.from(
    { length: shape.reduce((a, b) => a * b, 1) },
    (_, i) => offset + amplitude * Math.sin(12.9898 * i + phase),
  ),
});

/** Largest difference, relative to the largest value expected. */
function distance(actual: ArrayLike<number>, expected: readonly number[]): number {
  expect(actual.length).toBe(expected.length);
  const scale = Math.max(...expected.map(Math.abs), 1e-30);
  return Math.max(...expected.map((value, i) => Math.abs(actual[i]! - value))) / scale;
}

describe('losses', () => {
  it.each(
    recorded.losses.map((entry, index) => ({
      ...entry,
      title: `${entry.name} ${JSON.stringify(entry.config)} #${index}`,
    })),
  )('$title', ({ name, config, logprobs, inputs, loss, gradient }) => {
    const tensors = Object.fromEntries(Object.entries(inputs).map(([field, values]) => [field, floats(values)]));
    const datum = { tokens: new Int32Array(logprobs.length), inputs: tensors };
    const prepared = findLoss(name, config)(new LossInputs(datum, 0, { vocabulary: 8, context: 64 }), [
      logprobs.length,
    ]);
    const result = prepared(Float32Array.from(logprobs));
    expect(Math.abs(result.loss - loss)).toBeLessThan(1e-5 * Math.abs(loss));
    expect(distance(result.gradient, gradient)).toBeLessThan(1e-6);
  });
});

describe('AdamW', () => {
  it.each(recorded.optimizers)('follows torch.optim.AdamW with $options', ({ options, start, steps }) => {
    const weights = Float32Array.from(start);
    const state = createAdamState(start.length);
    for (const { gradient, norm, weights: expected, m, v } of steps) {
      const actual = adamStep(weights, Float32Array.from(gradient), state, resolveAdam(options));
      expect(Math.abs(actual - norm)).toBeLessThan(1e-6 * norm);
      expect(distance(weights, expected)).toBeLessThan(2e-6);
      expect(distance(state.m, m)).toBeLessThan(1e-6);
      expect(distance(state.v, v)).toBeLessThan(1e-6);
    }
    expect(state.step).toBe(steps.length);
  });
});

describe('the model', () => {
  it('gives the logprobs and the adapter gradients PyTorch gives', async () => {
    const { rank, tokens, logprobs, loss, gradients } = recorded.model;
    const shape: ModelShape = { name: 'torch', ...recorded.model.shape };
    const weights = Object.fromEntries(
      baseTensors(shape).map(({ name, shape: size }, index) => {
        const gain = size.length === 1;
        return [name, wave(size, index, gain ? 0.2 : 0.5, gain ? 1 : 0)];
      }),
    );
    const lora = linearShapes(shape).flatMap(({ name, inputs, outputs }, index) => [
      [`base_model.model.${name}.lora_A.weight`, wave([rank, inputs], 100 + index, 0.1)] as const,
      [`base_model.model.${name}.lora_B.weight`, wave([outputs, rank], 200 + index, 0.1)] as const,
    ]);
    const core = new EngineCore([{ shape, weights }]);
    core.createModel('m', 'torch', { rank });
    const { lora: resolved } = core.exportState('m', false);
    core.loadState('m', { baseModel: 'torch', lora: resolved, step: 0, weights: Object.fromEntries(lora) }, false);
    const data = [textDatum(Int32Array.from(tokens))];
    const result = await core.forwardBackward('m', data, { name: 'cross_entropy', config: {} }, false);
    expect(Math.abs(result.metrics['loss:sum']! - loss)).toBeLessThan(1e-5 * loss);
    expect(distance(result.outputs[0]!['logprobs']!.data, logprobs)).toBeLessThan(1e-5);
    core.optimStep('m', { beta1: 0 });
    const first = core.exportState('m', true).optimizer!.m;
    expect(Object.keys(first).sort()).toEqual(Object.keys(gradients).sort());
    for (const [name, gradient] of Object.entries(gradients))
      expect(distance(first[name]!.data, gradient), name).toBeLessThan(1e-4);
  });
});
