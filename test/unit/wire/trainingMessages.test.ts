import { describe, expect, it } from 'vitest';
import { prepare } from '../../../src/wire/record.js';
import { AdamParams, DimuonParams, OptimizerConfig, OptimizerParams } from '../../../src/wire/optimizer.js';
import { CreateSessionResponse } from '../../../src/wire/session.js';
import {
  GetInfoResponse,
  LoraConfig,
  LossFnConfig,
  LossFnType,
  OptimStepRequest,
  OptimStepResponse,
} from '../../../src/wire/training.js';
import { SaveWeightsRequest } from '../../../src/wire/weights.js';
import { expectDecoded, expectRefused } from './decoding.js';

describe('AdamParams', () => {
  const defaults = { learning_rate: 1e-4, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0, grad_clip_norm: 0 };
  it('has the protocol’s defaults', () => {
    expect(prepare(AdamParams, {})).toStrictEqual(defaults);
    expect(prepare(AdamParams, { learningRate: 0, gradClipNorm: 1 })).toStrictEqual({
      ...defaults,
      learning_rate: 0,
      grad_clip_norm: 1,
    });
  });
  it.each([
    [{ learning_rate: -1 }, 'learning_rate: expected a finite number ≥ 0'],
    [{ learning_rate: NaN }, 'learning_rate: expected a finite number ≥ 0'],
    [{ beta1: 1 }, 'beta1: expected a number in [0, 1)'],
    [{ beta2: -0.1 }, 'beta2: expected a number in [0, 1)'],
    [{ eps: 0 }, 'eps: expected a finite number > 0'],
    [{ weight_decay: -1 }, 'weight_decay: expected a finite number ≥ 0'],
    [{ grad_clip_norm: Infinity }, 'grad_clip_norm: expected a finite number ≥ 0'],
    [{ lr: 1 }, 'lr: unknown key'],
  ])('decode refuses %j', (value, said) => expectRefused(AdamParams, value, said));
});

describe('optimizers', () => {
  it('of the dimuon family have their own settings', () => {
    expect(prepare(DimuonParams, { type: 'dimuon', learningRate: 1 })).toStrictEqual({
      type: 'dimuon',
      learning_rate: 1,
      grad_clip_norm: 0,
      beta1: 0.9,
    });
    expectDecoded(OptimizerConfig, { type: 'dimuon' }, { type: 'dimuon', version: 1 });
    expectDecoded(OptimizerConfig, { type: 'adamw' }, { type: 'adamw' });
  });
  it('of a family that is not known pass through, keys and all', () => {
    const other = { type: 'shampoo', block_size: 7 };
    expectDecoded(OptimizerParams, other, other);
    expect(
      prepare(OptimStepRequest, { modelId: 'm', seqId: 1, optimizerParams: other })['optimizer_params'],
    ).toStrictEqual(other);
  });
  it('that are malformed do not pass as others', () => {
    expect(() => prepare(OptimStepRequest, { modelId: 'm', optimizerParams: { type: 'dimuon' } })).toThrow(
      'OptimStepRequest.optimizerParams: expected OptimizerParams',
    );
  });
});

describe('other messages', () => {
  it('decode leniently', () => {
    expectDecoded(CreateSessionResponse, { session_id: 's', info_message: null, type: 'x' }, { sessionId: 's' });
    expectDecoded(OptimStepResponse, {}, {});
    expectDecoded(
      GetInfoResponse,
      { model_id: 'm', model_data: {} },
      { modelId: 'm', modelData: {}, optimizerConfig: { type: 'adamw' } },
    );
    expectRefused(GetInfoResponse, { model_id: 'm' }, 'model_data: expected ModelData');
  });
  it('encode strictly', () => {
    expect(prepare(LoraConfig, { rank: 8 })).toStrictEqual({
      rank: 8,
      train_unembed: true,
      train_mlp: true,
      train_attn: true,
    });
    expect(prepare(SaveWeightsRequest, { modelId: 'm', path: 'a' })).toStrictEqual({
      model_id: 'm',
      path: 'a',
      overwrite: false,
      type: 'save_weights',
    });
    expect(LossFnConfig.is({ a: 1, b: 'x' })).toBe(true);
    expect(LossFnConfig.is({ a: NaN })).toBe(false);
    expect(LossFnType.is('stable_reinforce')).toBe(true);
    expect(LossFnType.is('mse')).toBe(false);
  });
});
