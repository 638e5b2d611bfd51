import * as t from 'io-ts';
import { Finite, Fraction, NonNegative, Positive } from './number.js';
import { request, withDefault } from './record.js';

/** One step of Adam with decoupled weight decay. A zero `gradClipNorm` clips nothing. */
export const AdamParams = request('AdamParams', {
  learning_rate: withDefault(NonNegative, 1e-4),
  beta1: withDefault(Fraction, 0.9),
  beta2: withDefault(Fraction, 0.95),
  eps: withDefault(Positive, 1e-12),
  weight_decay: withDefault(NonNegative, 0),
  grad_clip_norm: withDefault(NonNegative, 0),
});
/**
 * One step of Adam with decoupled weight decay.
 *
 * The defaults are the Tinker API's, and two of them are not those of PyTorch or of most papers. `beta2` is 0.95
 * (there 0.999) and `eps` is 1e-12 (there 1e-8).
 */
export interface AdamParams {
  /** Learning rate: a number ≥ 0. Default 1e-4. */
  readonly learningRate?: number;
  /** Decay of the running mean of the gradients, from 0 to below 1. Default 0.9. */
  readonly beta1?: number;
  /** Decay of the running mean of their squares, from 0 to below 1. Default 0.95, and not PyTorch's 0.999. */
  readonly beta2?: number;
  /** Added to the denominator: a number > 0. Default 1e-12, and not PyTorch's 1e-8. */
  readonly eps?: number;
  /** Decoupled weight decay, as in AdamW: a number ≥ 0. Default 0: none. */
  readonly weightDecay?: number;
  /** The largest norm of the whole gradient; a larger one is scaled down to it. A number ≥ 0. Default 0: no clipping. */
  readonly gradClipNorm?: number;
}

/** One step of the dimuon family; the model must have been created with it. */
export const DimuonParams = request('DimuonParams', {
  type: t.literal('dimuon'),
  learning_rate: NonNegative,
  grad_clip_norm: withDefault(Finite, 0),
  beta1: withDefault(Fraction, 0.9),
});
/** One step of the dimuon family; the model must have been created with it. */
export type DimuonParams = {
  /** Always `dimuon`. */
  readonly type: 'dimuon';
  /** Learning rate: a number ≥ 0. Required. */
  readonly learningRate: number;
  /** The largest norm of the whole gradient. Default 0: no clipping. */
  readonly gradClipNorm?: number;
  /** Decay of the momentum, from 0 to below 1. Default 0.9. */
  readonly beta1?: number;
};

/** An optimizer family this release does not know, passed through as it is, keys and all. */
export interface OtherOptimizer {
  /** The family's name. */
  readonly type: string;
  readonly [field: string]: unknown;
}
const isTyped = (u: unknown): u is OtherOptimizer =>
  typeof u === 'object' && u !== null && typeof (u as { type?: unknown }).type === 'string';
const KNOWN = new Set(['adamw', 'dimuon']);
export const OtherOptimizer: t.Type<OtherOptimizer> = new t.Type<OtherOptimizer>(
  'an optimizer with a type',
  (u): u is OtherOptimizer => isTyped(u) && !KNOWN.has(u.type),
  (u, context) => (isTyped(u) ? t.success(u) : t.failure(u, context)),
  t.identity,
);

export const AdamOptimizerConfig = request('AdamOptimizerConfig', { type: t.literal('adamw') });
/** AdamW, which every model has by default. */
export type AdamOptimizerConfig = {
  /** Always `adamw`. */
  readonly type: 'adamw';
};
export const DimuonOptimizerConfig = request('DimuonOptimizerConfig', {
  type: t.literal('dimuon'),
  version: withDefault(t.literal(1), 1),
});
/** Dimuon, instead of AdamW. */
export type DimuonOptimizerConfig = {
  /** Always `dimuon`. */
  readonly type: 'dimuon';
  /** Default 1, the only one so far. */
  readonly version?: 1;
};

/** The optimizer family of a model, fixed when the model is created. */
export const OptimizerConfig = t.union([AdamOptimizerConfig, DimuonOptimizerConfig, OtherOptimizer], 'OptimizerConfig');
export type OptimizerConfig = AdamOptimizerConfig | DimuonOptimizerConfig | OtherOptimizer;
/** One optimizer step of a family other than Adam. For Adam see {@link AdamParams}. */
export const OptimizerParams = t.union([DimuonParams, OtherOptimizer], 'OptimizerParams');
export type OptimizerParams = DimuonParams | OtherOptimizer;
