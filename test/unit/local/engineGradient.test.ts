import { describe, expect, it } from 'vitest';
import type { EngineCore } from '../../../src/local/engine/thread/core.js';
import type { EngineDatum, LoraOptions, LossConfig, ModelState } from '../../../src/local/engine/types.js';
import { busyState, createCore, floats, ints, SHAPE, someTokens, textDatum } from './engineModel.js';

const LORA: LoraOptions = { rank: 3, seed: 4 };
const LENGTH = 21;

async function lossAt(core: EngineCore, state: ModelState, data: EngineDatum[], name: string, config: LossConfig) {
  core.loadState('m', state, false);
  const { metrics } = await core.forwardBackward('m', data, { name, config }, true);
  return metrics['loss:sum']!;
}

/** Without memory (beta1 = 0) Adam's first moment is the gradient itself. */
async function gradients(core: EngineCore, state: ModelState, data: EngineDatum[], name: string, config: LossConfig) {
  core.loadState('m', state, false);
  await core.forwardBackward('m', data, { name, config }, false);
  core.optimStep('m', { learningRate: 0, beta1: 0 });
  return core.exportState('m', true).optimizer!.m;
}

function moved(state: ModelState, tensor: string, by: (index: number) => number): ModelState {
  const { shape, data } = state.weights[tensor]!;
  return { ...state, weights: { ...state.weights, [tensor]: { shape, data: data.map((value, i) => value + by(i)) } } };
}

const policyDatum = (seed: number): EngineDatum => {
  const tokens = someTokens(LENGTH + 1, seed);
  const noise = (offset: number) => Float32Array.from({ length: LENGTH }, (_, i) => Math.sin(offset + 1.7 * i));
  return {
    tokens: tokens.slice(0, LENGTH),
    inputs: {
      target_tokens: ints(tokens.slice(1)),
      logprobs: floats(noise(seed).map((value) => -5.6 + 0.2 * value)),
      advantages: floats(noise(seed + 0.5)),
      sequence_ratio_mask: floats(noise(3).map((value) => (value > 0 ? 1 : 0))),
    },
  };
};

const softDatum = (seed: number): EngineDatum => {
  const targets = someTokens(LENGTH * 3, seed + 1);
  return {
    tokens: someTokens(LENGTH, seed),
    inputs: {
      target_tokens: ints(targets, [LENGTH, 3]),
      weights: floats(
        Float32Array.from(targets, (token) => token / 264),
        [LENGTH, 3],
      ),
    },
  };
};

/** Where all tokens count alike, gspo's stopped mean moves exactly as its tokens do, and the derivative is a true one. */
const evenDatum = (seed: number): EngineDatum => {
  const datum = policyDatum(seed);
  const ones = floats(new Float32Array(LENGTH).fill(1));
  return { ...datum, inputs: { ...datum.inputs, advantages: ones, sequence_ratio_mask: ones } };
};

/** Clipped everywhere, cispo's stopped ratio is constant, and the derivative is a true one. */
const CISPO = { clip_low_threshold: 1e-9, clip_high_threshold: 2e-9 };

const CASES: readonly (readonly [string, EngineDatum[], LossConfig])[] = [
  ['cross_entropy', [textDatum(someTokens(LENGTH + 1, 1)), textDatum(someTokens(70, 2))], {}],
  ['cross_entropy', [softDatum(3)], {}],
  ['importance_sampling', [policyDatum(1)], {}],
  ['ppo', [policyDatum(2)], { clip_low_threshold: 0.5, clip_high_threshold: 2 }],
  ['cispo', [policyDatum(3)], CISPO],
  ['dro', [policyDatum(4)], { beta: 0.3 }],
  ['gspo', [evenDatum(5)], { clip_low_threshold: 1e-9, clip_high_threshold: 1e9 }],
];

describe('gradients through the whole model', () => {
  it.each(CASES)('%s agrees with finite differences in every adapted matrix', async (name, data, config) => {
    const core = createCore();
    core.createModel('m', SHAPE.name, LORA);
    const state = busyState(LORA, 11);
    const analytic = await gradients(core, state, data, name, config);
    for (const [tensor, { data: gradient }] of Object.entries(analytic)) {
      // Moving along the gradient itself gives the largest change a step of this size can.
      const norm = Math.hypot(...gradient);
      expect(norm, tensor).toBeGreaterThan(0);
      const step = 2e-3;
      const along = (sign: number) => (i: number) => (sign * step * gradient[i]!) / norm;
      const up = await lossAt(core, moved(state, tensor, along(1)), data, name, config);
      const down = await lossAt(core, moved(state, tensor, along(-1)), data, name, config);
      const numeric = (up - down) / (2 * step);
      expect(Math.abs(numeric / norm - 1), `${name} ${tensor}: ${numeric} against ${norm}`).toBeLessThan(0.02);
    }
  });
});
