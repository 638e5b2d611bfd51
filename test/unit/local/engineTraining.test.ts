import { describe, expect, it } from 'vitest';
import { decodeState, encodeState } from '../../../src/local/engine/files/checkpoint.js';
import type { EngineCore } from '../../../src/local/engine/thread/core.js';
import { EngineUserError } from '../../../src/local/engine/errors.js';
import type { EngineDatum, LoraOptions, LossConfig } from '../../../src/local/engine/types.js';
import { createCore, floats, ints, SHAPE, someTokens, textDatum } from './engineModel.js';

const DATA = [3, 17, 40, 64, 65, 9].map((length, index) => textDatum(someTokens(length + 1, index)));
const ADAM = { learningRate: 0.01, gradClipNorm: 5, weightDecay: 0.01 };

function createTraining(lora: LoraOptions = { rank: 4 }) {
  const core = createCore();
  core.createModel('m', SHAPE.name, lora);
  const run = (data: readonly EngineDatum[], forwardOnly = false, name = 'cross_entropy', config: LossConfig = {}) =>
    core.forwardBackward('m', data, { name, config }, forwardOnly);
  return { core, run };
}

const weightsOf = (core: EngineCore) => core.exportState('m', true);

describe('forwardBackward', () => {
  it('adds gradients up over calls: split or whole, the step is the same bit for bit', async () => {
    const whole = createTraining();
    await whole.run(DATA);
    whole.core.optimStep('m', ADAM);
    const split = createTraining();
    await split.run(DATA.slice(0, 2));
    await split.run(DATA.slice(2));
    split.core.optimStep('m', ADAM);
    expect(weightsOf(split.core)).toStrictEqual(weightsOf(whole.core));
  });

  it('leaves gradients alone when only forward is asked', async () => {
    const { core, run } = createTraining();
    const start = weightsOf(core);
    const forward = await run(DATA, true);
    expect(core.optimStep('m', ADAM).metrics).toEqual({ 'unclipped_grad_l2:mean': 0 });
    expect(weightsOf(core)).toStrictEqual(start);
    expect(await run(DATA)).toStrictEqual(forward);
    await run(DATA, true);
    const { metrics } = core.optimStep('m', ADAM);
    const other = createTraining();
    await other.run(DATA);
    expect(other.core.optimStep('m', ADAM).metrics).toEqual(metrics);
    expect(weightsOf(other.core)).toStrictEqual(weightsOf(core));
  });

  it('drops the gradients with the step', async () => {
    const { core, run } = createTraining();
    await run(DATA);
    expect(core.optimStep('m', ADAM).metrics['unclipped_grad_l2:mean']).toBeGreaterThan(0);
    const after = weightsOf(core);
    core.optimStep('m', ADAM);
    expect(weightsOf(core)).toStrictEqual(after);
  });

  it('takes soft targets, dense and CSR alike', async () => {
    const dense = { target_tokens: ints([5, 0, 6, 7], [2, 2]), weights: floats([0.5, 0, 0.25, 0.75], [2, 2]) };
    const sparse = { crowIndices: Int32Array.of(0, 1, 3), colIndices: Int32Array.of(0, 0, 1) };
    const csr = {
      target_tokens: { ...ints([5, 6, 7], [2, 2]), sparse },
      weights: { ...floats([0.5, 0.25, 0.75], [2, 2]), sparse },
    };
    const tokens = Int32Array.of(1, 2);
    const [a, b] = [createTraining(), createTraining()];
    const result = await a.run([{ tokens, inputs: dense }]);
    expect(await b.run([{ tokens, inputs: csr }])).toStrictEqual(result);
    const { data, shape } = result.outputs[0]!['logprobs']!;
    expect(shape).toEqual([2, 2]);
    expect(result.metrics['loss:sum']).toBeCloseTo(-(0.5 * data[0]! + 0.25 * data[2]! + 0.75 * data[3]!), 5);
    a.core.optimStep('m', ADAM);
    b.core.optimStep('m', ADAM);
    expect(weightsOf(b.core)).toStrictEqual(weightsOf(a.core));
  });

  it('holds no more memory after four hundred datums of many lengths than after the longest', async () => {
    const { core, run } = createTraining();
    const data = Array.from({ length: 200 }, (_, index) => textDatum(someTokens(2 + index, index)));
    await run(data);
    const bytes = core.heap.bytes;
    await run(data);
    expect(core.heap.bytes).toBe(bytes);
  });
});

describe('what is adapted', () => {
  it.each([
    [{ rank: 1, trainAttn: false, trainMlp: false }, /^lm_head$/],
    [{ rank: 5, trainMlp: false, trainUnembed: false }, /^model\.layers\.\d\.self_attn\.[qkvo]_proj$/],
    [{ rank: 2, trainAttn: false, trainUnembed: false }, /^model\.layers\.\d\.mlp\.(gate|up|down)_proj$/],
  ])('%o', async (lora, pattern) => {
    const { core, run } = createTraining(lora);
    const before = weightsOf(core).weights;
    for (let step = 0; step < 2; step++) {
      await run(DATA);
      core.optimStep('m', ADAM);
    }
    const after = weightsOf(core).weights;
    for (const [name, { data }] of Object.entries(after)) {
      const [, module = ''] = /^base_model\.model\.(.+)\.lora_[AB]\.weight$/.exec(name) ?? [];
      expect(module).toMatch(pattern);
      expect(data, name).not.toStrictEqual(before[name]!.data);
    }
  });

  it('starts as the base model, and from its seed', async () => {
    const core = createCore();
    core.createModel('a', SHAPE.name, { rank: 4, seed: 1 });
    core.createModel('b', SHAPE.name, { rank: 8, seed: 2, trainMlp: false });
    const loss = { name: 'cross_entropy', config: {} };
    const [a, b] = [
      await core.forwardBackward('a', DATA, loss, true),
      await core.forwardBackward('b', DATA, loss, true),
    ];
    expect(a).toStrictEqual(b);
    core.createModel('c', SHAPE.name, { rank: 4, seed: 1 });
    core.createModel('d', SHAPE.name, { rank: 4, seed: 3 });
    expect(core.exportState('c', false)).toStrictEqual(core.exportState('a', false));
    expect(core.exportState('d', false).weights).not.toStrictEqual(core.exportState('a', false).weights);
  });
});

describe('resume', () => {
  it('continues bit for bit from a saved state', async () => {
    const steady = createTraining();
    const step = async ({ core, run }: ReturnType<typeof createTraining>) => {
      const { metrics } = await run(DATA);
      return { ...metrics, ...core.optimStep('m', ADAM).metrics };
    };
    for (let i = 0; i < 3; i++) await step(steady);
    const file = encodeState(weightsOf(steady.core));
    const resumed = createTraining({ rank: 4, seed: 99 });
    resumed.core.loadState('m', decodeState(file), true);
    for (let i = 0; i < 3; i++) expect(await step(resumed)).toStrictEqual(await step(steady));
    const [a, b] = [weightsOf(resumed.core), weightsOf(steady.core)];
    expect({ ...a, lora: b.lora }).toStrictEqual(b);
  });

  it('starts the optimizer anew where only weights are asked', async () => {
    const { core, run } = createTraining();
    await run(DATA);
    core.optimStep('m', ADAM);
    const state = weightsOf(core);
    core.loadState('m', state, false);
    expect(weightsOf(core).step).toBe(0);
    expect(weightsOf(core).weights).toStrictEqual(state.weights);
    expect(Object.values(weightsOf(core).optimizer!.m).every(({ data }) => data.every((value) => value === 0))).toBe(
      true,
    );
  });

  it('refuses what does not fit and changes nothing', async () => {
    const { core } = createTraining();
    const before = weightsOf(core);
    const other = createTraining({ rank: 8 }).core.exportState('m', true);
    const load =
      (state: typeof other, optimizer = true) =>
      () =>
        core.loadState('m', state, optimizer);
    expect(load(other)).toThrow('lora_A.weight as [8, 24], this model as [4, 24]');
    expect(load({ ...before, baseModel: 'other' })).toThrow('checkpoint is of other');
    const { optimizer: _, ...bare } = before;
    expect(load(bare)).toThrow('no optimizer state');
    const first = Object.keys(before.weights)[0]!;
    const { [first]: __, ...rest } = before.weights;
    expect(load({ ...before, weights: rest })).toThrow(`lacks ${first}`);
    expect(load({ ...before, weights: { ...before.weights, extra: before.weights[first]! } })).toThrow('extra');
    expect(weightsOf(core)).toStrictEqual(before);
  });
});

describe('a wrong call', () => {
  const good = textDatum(someTokens(5, 1));
  const policy = (extra: EngineDatum['inputs'] = {}): EngineDatum => ({
    tokens: good.tokens,
    inputs: {
      target_tokens: good.inputs['target_tokens']!,
      logprobs: floats([-1, -1, -1, -1]),
      advantages: floats([1, 1, 1, 1]),
      ...extra,
    },
  });
  const inputs = (extra: EngineDatum['inputs']): EngineDatum => ({ ...good, inputs: { ...good.inputs, ...extra } });

  it.each<[string, EngineDatum[], string?, LossConfig?]>([
    ['at least one datum', []],
    ['datum 1: model_input is empty', [good, { ...good, tokens: new Int32Array(0) }]],
    ['datum 0: model_input has 300 tokens', [{ ...good, tokens: new Int32Array(300) }]],
    ['datum 1: model_input has -1 at 0', [good, { ...good, tokens: Int32Array.of(-1, 0, 0, 0) }]],
    ['datum 1: target_tokens is missing', [good, { ...good, inputs: {} }]],
    ['datum 0: target_tokens has shape [3], expected [4] or [4, K]', [inputs({ target_tokens: ints([1, 2, 3]) })]],
    ['datum 0: target_tokens has 264 at 2', [inputs({ target_tokens: ints([1, 2, 264, 3]) })]],
    ['datum 0: target_tokens must be int64', [inputs({ target_tokens: floats([1, 2, 3, 4]) })]],
    ['datum 0: weights has 2 values for shape [4]', [inputs({ weights: floats([1, 2], [4]) })]],
    ['datum 0: weights has shape [5], expected [4]', [inputs({ weights: floats([1, 2, 3, 4, 5]) })]],
    ['datum 0: weights is not finite at 1', [inputs({ weights: floats([1, NaN, 3, 4]) })]],
    ['datum 0: logprobs is missing', [good], 'importance_sampling'],
    [
      'datum 1: sequence_ratio_mask is missing',
      [policy({ sequence_ratio_mask: floats([1, 1, 1, 1]) }), policy()],
      'gspo',
    ],
    ['datum 0: sequence_ratio_mask marks no token', [policy({ sequence_ratio_mask: floats([0, 0, 0, 0]) })], 'gspo'],
    ['datum 0: clip_low_threshold has shape [2]', [policy({ clip_low_threshold: floats([1, 1]) })], 'ppo'],
    ['only cross_entropy takes several targets', [policy({ target_tokens: ints(new Int32Array(8), [4, 2]) })], 'ppo'],
    [
      '"clip_low" does not belong to ppo; it takes clip_low_threshold, clip_high_threshold',
      [policy()],
      'ppo',
      { clip_low: 1 },
    ],
    ['clip_low_threshold must be a finite number', [policy()], 'ppo', { clip_low_threshold: 'low' }],
    ['"stable_reinforce" is not supported here: no public source', [policy()], 'stable_reinforce'],
    ['"custom" is not supported here', [policy()], 'custom'],
    ['"toString" is not supported here. Supported: cross_entropy', [policy()], 'toString'],
  ])('is refused before anything has run: %s', async (message, data, name = 'cross_entropy', config = {}) => {
    const { core, run } = createTraining();
    const call = run(data, false, name, config);
    await expect(call).rejects.toThrow(EngineUserError);
    await expect(call).rejects.toThrow(message);
    expect(core.optimStep('m', ADAM).metrics).toEqual({ 'unclipped_grad_l2:mean': 0 });
  });

  it.each<[string, LoraOptions, string?, string?]>([
    ['lora rank must be an integer from 1 to 256, got 0', { rank: 0 }],
    ['at least one of train_attn', { rank: 1, trainAttn: false, trainMlp: false, trainUnembed: false }],
    ['there is no base model "gpt" here. Known: test/model', { rank: 1 }, 'gpt'],
    ['optimizer "dimuon" is not supported here: no public source', { rank: 1 }, SHAPE.name, 'dimuon'],
  ])('no model is made: %s', (message, lora, base = SHAPE.name, optimizer = 'adamw') => {
    const core = createCore();
    expect(() => core.createModel('m', base, lora, optimizer)).toThrow(message);
    expect(() => core.exportState('m', false)).toThrow('there is no model m');
  });

  it.each([
    ['learning_rate', { learningRate: -1 }],
    ['beta1', { beta1: 1 }],
    ['beta2', { beta2: -0.1 }],
    ['eps', { eps: 0 }],
    ['weight_decay', { weightDecay: -1 }],
    ['grad_clip_norm', { gradClipNorm: NaN }],
  ])('no step is made and gradients stay: %s', async (field, options) => {
    const { core, run } = createTraining();
    await run(DATA);
    expect(() => core.optimStep('m', options)).toThrow(field);
    expect(core.optimStep('m', ADAM).metrics['unclipped_grad_l2:mean']).toBeGreaterThan(0);
  });
});
