import { describe, expect, it } from 'vitest';
import { EngineUserError } from '../../../src/local/engine/errors.js';
import { runCustomLoss } from '../../../src/local/engine/training/customLoss.js';
import { busyState, createCore, floats, SHAPE, someTokens, textDatum } from './engineModel.js';

const CROSS_ENTROPY = { name: 'cross_entropy', config: {} };
const LORA = { rank: 4 };

function prepare() {
  const core = createCore();
  core.createModel('m', SHAPE.name, LORA);
  core.loadState('m', busyState(LORA, 1), false);
  return core;
}

describe('a run that diverges', () => {
  const data = [textDatum(someTokens(20, 1))];

  it('is a user error that names the step, and the weights stay as they were', async () => {
    const core = prepare();
    await core.forwardBackward('m', data, CROSS_ENTROPY, false);
    core.optimStep('m', { learningRate: 1e-3 });
    await core.forwardBackward('m', data, CROSS_ENTROPY, false);
    const before = core.exportState('m', true);
    expect(() => core.optimStep('m', { learningRate: 1e300 })).toThrow(EngineUserError);
    expect(() => core.optimStep('m', { learningRate: 1e300 })).toThrow(
      'step 2: a weight would not be finite after it. The run has diverged; nothing was changed',
    );
    expect(core.exportState('m', true)).toEqual(before);
    // The gradients are still there: a sane step can be made.
    const { metrics } = core.optimStep('m', { learningRate: 1e-3 });
    expect(metrics['unclipped_grad_l2:mean']).toBeGreaterThan(0);
  });

  it('is refused where a loss is no number; what was gathered before stays', async () => {
    const core = prepare();
    await core.forwardBackward('m', data, CROSS_ENTROPY, false);
    const weights = new Float32Array(19).fill(1);
    weights[3] = NaN;
    const wrong = [data[0]!, { ...data[0]!, inputs: { ...data[0]!.inputs, weights: floats(weights) } }];
    const failed = core.forwardBackward('m', wrong, CROSS_ENTROPY, false);
    await expect(failed).rejects.toThrow(EngineUserError);
    const { metrics } = core.optimStep('m', {});
    const alone = prepare();
    await alone.forwardBackward('m', data, CROSS_ENTROPY, false);
    expect(metrics).toEqual(alone.optimStep('m', {}).metrics);
    expect(core.exportState('m', true)).toEqual(alone.exportState('m', true));
  });

  it('is refused where a gradient is not finite', async () => {
    const core = prepare();
    const source = { gradients: [new Float32Array(19).fill(3e38)], losses: [0] };
    await expect(core.forwardBackward('m', data, source, false)).rejects.toThrow('step 1: a gradient is not finite');
    expect(core.optimStep('m', {}).metrics).toEqual({ 'unclipped_grad_l2:mean': 0 });
  });

  it('is refused where a custom loss gives a metric that is no number', async () => {
    const core = prepare();
    const logprobs = { dtype: 'float32' as const, data: new Float32Array(19), shape: [19] };
    const pass = () => Promise.resolve({ outputs: [{ logprobs }], metrics: {} });
    const loss = () => ({ loss: 1, gradient: new Float32Array(19), metrics: { 'kl:mean': NaN } });
    await expect(runCustomLoss(data, loss, false, pass)).rejects.toThrow(
      'the custom loss gave NaN for kl:mean of datum 0; nothing was changed',
    );
    expect(core.optimStep('m', {}).metrics).toEqual({ 'unclipped_grad_l2:mean': 0 });
  });
});
