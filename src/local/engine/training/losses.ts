import { EngineUserError } from '../errors.js';
import type { LossInputs } from './lossInputs.js';
import type { LossConfig, LossName, LossResult } from '../types.js';

/**
 * A loss ready to be evaluated: it has read and checked a datum's inputs, and gives value and derivative once the
 * target logprobs are there.
 */
export interface PreparedLoss {
  (logprobs: Float32Array): LossResult;
  /** Whether the derivative of a token depends on the logprobs of other tokens. Default false. */
  readonly wholeSequence?: boolean;
}

/** Reads what the loss needs of one datum; `shape` is that of its targets. */
type Prepare = (inputs: LossInputs, shape: readonly number[], config: LossConfig) => PreparedLoss;

const DEFAULT_CLIP = { clip_low_threshold: 0.8, clip_high_threshold: 1.2 } as const;
const DEFAULT_BETA = 0.05;

/** Sums a term over the tokens; the term returns its value and leaves its derivative in `gradient`. */
function sumTokens(
  logprobs: Float32Array,
  term: (p: number, index: number, gradient: Float32Array) => number,
): LossResult {
  const gradient = new Float32Array(logprobs.length);
  let loss = 0;
  for (let index = 0; index < logprobs.length; index++) loss += term(logprobs[index]!, index, gradient);
  return { loss, gradient };
}

/** Clip bounds of a token: those of the datum if it has them, otherwise the configured ones. */
function clipBounds(
  inputs: LossInputs,
  shape: readonly number[],
  config: LossConfig,
): (index: number) => readonly [number, number] {
  const bound = (name: keyof typeof DEFAULT_CLIP): ((index: number) => number) => {
    if (inputs.has(name)) {
      const values = inputs.values(name, shape);
      return (index) => values[index]!;
    }
    const value = config[name] ?? DEFAULT_CLIP[name];
    return () => value as number;
  };
  const low = bound('clip_low_threshold');
  const high = bound('clip_high_threshold');
  return (index) => [low(index), high(index)];
}

/** −min(r·A, clamp(r)·A) and its derivative for a ratio whose own derivative is itself. */
function clippedTerm(ratio: number, advantage: number, low: number, high: number): readonly [number, number] {
  const clamped = Math.min(Math.max(ratio, low), high);
  const free = ratio * advantage;
  const held = clamped * advantage;
  return free > held ? [-held, 0] : [-free, -free];
}

const crossEntropy: Prepare = (inputs, shape) => {
  const weights = inputs.values('weights', shape);
  return (logprobs) =>
    sumTokens(logprobs, (p, i, gradient) => {
      gradient[i] = -weights[i]!;
      // A weight of 0 must silence even a logprob of −∞.
      return weights[i] === 0 ? 0 : -p * weights[i]!;
    });
};

const policy = (inputs: LossInputs, shape: readonly number[]) => ({
  q: inputs.values('logprobs', shape),
  advantages: inputs.values('advantages', shape),
});

const importanceSampling: Prepare = (inputs, shape) => {
  const { q, advantages } = policy(inputs, shape);
  return (logprobs) => sumTokens(logprobs, (p, i, gradient) => (gradient[i] = -Math.exp(p - q[i]!) * advantages[i]!));
};

const ppo: Prepare = (inputs, shape, config) => {
  const { q, advantages } = policy(inputs, shape);
  const bounds = clipBounds(inputs, shape, config);
  return (logprobs) =>
    sumTokens(logprobs, (p, i, gradient) => {
      const [value, derivative] = clippedTerm(Math.exp(p - q[i]!), advantages[i]!, ...bounds(i));
      gradient[i] = derivative;
      return value;
    });
};

const cispo: Prepare = (inputs, shape, config) => {
  const { q, advantages } = policy(inputs, shape);
  const bounds = clipBounds(inputs, shape, config);
  return (logprobs) =>
    sumTokens(logprobs, (p, i, gradient) => {
      const [low, high] = bounds(i);
      const weight = Math.min(Math.max(Math.exp(p - q[i]!), low), high) * advantages[i]!;
      gradient[i] = -weight;
      return -weight * p;
    });
};

const dro: Prepare = (inputs, shape, config) => {
  const { q, advantages } = policy(inputs, shape);
  const beta = (config['beta'] ?? DEFAULT_BETA) as number;
  return (logprobs) =>
    sumTokens(logprobs, (p, i, gradient) => {
      const away = p - q[i]!;
      gradient[i] = beta * away - advantages[i]!;
      return 0.5 * beta * away * away - p * advantages[i]!;
    });
};

const gspo: Prepare = (inputs, shape, config) => {
  const { q, advantages } = policy(inputs, shape);
  const bounds = clipBounds(inputs, shape, config);
  const mask = inputs.values('sequence_ratio_mask', shape);
  const count = mask.reduce((sum, value) => sum + (value === 0 ? 0 : 1), 0);
  if (count === 0) throw inputs.fault('sequence_ratio_mask marks no token');
  const loss = (logprobs: Float32Array) => {
    let sum = 0;
    for (let i = 0; i < mask.length; i++) if (mask[i] !== 0) sum += logprobs[i]! - q[i]!;
    const ratio = Math.exp(sum / count);
    return sumTokens(logprobs, (_, i, gradient) => {
      const [value, derivative] = clippedTerm(ratio, advantages[i]!, ...bounds(i));
      gradient[i] = derivative;
      return value;
    });
  };
  return Object.assign(loss, { wholeSequence: true });
};

const CLIP_KEYS = Object.keys(DEFAULT_CLIP);

/** Each loss with the config keys it takes. Only cross_entropy takes several targets per token. */
const LOSSES: Readonly<Record<LossName, { readonly prepare: Prepare; readonly config: readonly string[] }>> = {
  cross_entropy: { prepare: crossEntropy, config: [] },
  importance_sampling: { prepare: importanceSampling, config: [] },
  ppo: { prepare: ppo, config: CLIP_KEYS },
  cispo: { prepare: cispo, config: CLIP_KEYS },
  dro: { prepare: dro, config: ['beta'] },
  gspo: { prepare: gspo, config: CLIP_KEYS },
};

const REFUSED: Readonly<Record<string, string>> = {
  stable_reinforce: 'no public source defines it well enough to compute the same numbers as the hosted service',
  custom: 'it needs a loss that was created before; pass the loss itself to the engine',
};

/** The loss of that name. An unknown one, or a config that does not belong to it, is a user error that says why. */
export function findLoss(
  name: string,
  config: LossConfig,
): (inputs: LossInputs, shape: readonly number[]) => PreparedLoss {
  const known = Object.keys(LOSSES).join(', ');
  if (!Object.hasOwn(LOSSES, name)) {
    const reason = Object.hasOwn(REFUSED, name) ? `: ${REFUSED[name]}` : '';
    throw new EngineUserError(`loss_fn ${JSON.stringify(name)} is not supported here${reason}. Supported: ${known}`);
  }
  const { prepare, config: keys } = LOSSES[name as LossName];
  for (const [key, value] of Object.entries(config)) {
    if (!keys.includes(key)) {
      throw new EngineUserError(
        `loss_fn_config ${JSON.stringify(key)} does not belong to ${name}` +
          (keys.length > 0 ? `; it takes ${keys.join(', ')}` : ', which takes none'),
      );
    }
    if (typeof value !== 'number' || !Number.isFinite(value)) {
      throw new EngineUserError(`loss_fn_config ${key} must be a finite number`);
    }
  }
  return (inputs, shape) => {
    if (name !== 'cross_entropy' && shape.length !== 1) {
      throw inputs.fault(
        `target_tokens has shape [${shape.join(', ')}]; only cross_entropy takes several targets per token`,
      );
    }
    return prepare(inputs, shape, config);
  };
}
