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
export type AdamParams = Partial<t.TypeOf<typeof AdamParams>>;

/** One step of the dimuon family; the model must have been created with it. */
export const DimuonParams = request('DimuonParams', {
  type: t.literal('dimuon'),
  learning_rate: NonNegative,
  grad_clip_norm: withDefault(Finite, 0),
  beta1: withDefault(Fraction, 0.9),
});
export type DimuonParams = {
  readonly type: 'dimuon';
  readonly learningRate: number;
  readonly gradClipNorm?: number;
  readonly beta1?: number;
};

/** An optimizer family this release does not know, passed through as it is, keys and all. */
export interface OtherOptimizer {
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
export type AdamOptimizerConfig = t.TypeOf<typeof AdamOptimizerConfig>;
export const DimuonOptimizerConfig = request('DimuonOptimizerConfig', {
  type: t.literal('dimuon'),
  version: withDefault(t.literal(1), 1),
});
export type DimuonOptimizerConfig = { readonly type: 'dimuon'; readonly version?: 1 };

/** The optimizer family of a model, fixed when the model is created. */
export const OptimizerConfig = t.union([AdamOptimizerConfig, DimuonOptimizerConfig, OtherOptimizer], 'OptimizerConfig');
export type OptimizerConfig = AdamOptimizerConfig | DimuonOptimizerConfig | OtherOptimizer;
export const OptimizerParams = t.union([DimuonParams, OtherOptimizer], 'OptimizerParams');
export type OptimizerParams = DimuonParams | OtherOptimizer;
