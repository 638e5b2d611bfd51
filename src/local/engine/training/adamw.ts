import { EngineUserError } from '../errors.js';
import type { AdamOptions } from '../types.js';

/** Moments and step count of AdamW. */
export interface AdamState {
  readonly m: Float32Array;
  readonly v: Float32Array;
  step: number;
}

export const createAdamState = (size: number): AdamState => ({
  m: new Float32Array(size),
  v: new Float32Array(size),
  step: 0,
});

type ResolvedAdam = { readonly [K in keyof AdamOptions]-?: number };

/** Fills in the defaults; a value out of range is a user error that names it. */
export function resolveAdam(options: AdamOptions): ResolvedAdam {
  const { learningRate = 1e-4, beta1 = 0.9, beta2 = 0.95, eps = 1e-12, weightDecay = 0, gradClipNorm = 0 } = options;
  const check = (name: string, value: number, fits: boolean, range: string) => {
    if (!fits || !Number.isFinite(value)) throw new EngineUserError(`${name} must be ${range}, got ${value}`);
  };
  check('learning_rate', learningRate, learningRate >= 0, '≥ 0');
  check('beta1', beta1, beta1 >= 0 && beta1 < 1, 'in [0, 1)');
  check('beta2', beta2, beta2 >= 0 && beta2 < 1, 'in [0, 1)');
  check('eps', eps, eps > 0, '> 0');
  check('weight_decay', weightDecay, weightDecay >= 0, '≥ 0');
  check('grad_clip_norm', gradClipNorm, gradClipNorm >= 0, '≥ 0');
  return { learningRate, beta1, beta2, eps, weightDecay, gradClipNorm };
}

/** The Euclidean norm over all gradients. */
function gradientNorm(gradients: Float32Array): number {
  let squares = 0;
  for (let i = 0; i < gradients.length; i++) squares += gradients[i]! * gradients[i]!;
  return Math.sqrt(squares);
}

/**
 * One step of `torch.optim.AdamW` in place, after `torch.nn.utils.clip_grad_norm_` if a norm is given: weight decay
 * is decoupled, the moments are bias-corrected. Returns the norm before clipping.
 */
export function adamStep(
  weights: Float32Array,
  gradients: Float32Array,
  state: AdamState,
  options: ResolvedAdam,
): number {
  const { learningRate, beta1, beta2, eps, weightDecay, gradClipNorm } = options;
  const norm = gradientNorm(gradients);
  const clip = gradClipNorm > 0 ? Math.min(1, gradClipNorm / (norm + 1e-6)) : 1;
  const { m, v } = state;
  const step = ++state.step;
  const decay = 1 - learningRate * weightDecay;
  const stepSize = learningRate / (1 - Math.pow(beta1, step));
  const root = Math.sqrt(1 - Math.pow(beta2, step));
  for (let i = 0; i < weights.length; i++) {
    const gradient = gradients[i]! * clip;
    m[i] = m[i]! + (gradient - m[i]!) * (1 - beta1);
    v[i] = beta2 * v[i]! + (1 - beta2) * gradient * gradient;
    weights[i] = weights[i]! * decay - (stepSize * m[i]!) / (Math.sqrt(v[i]!) / root + eps);
  }
  return norm;
}
