import type { TensorData } from '../../wire/tensor.js';
import { type MaskedDatum, valuesOf } from './trajectoryData.js';

const QUANTILES = { p01: 0.01, p50: 0.5, p99: 0.99, max: 1 };

/**
 * How far the trainer is from the sampler, over all tokens trained on: from the logprobs that the backward pass returns
 * anyway. Empty where it returned none.
 */
export function offPolicyMetrics(
  data: readonly MaskedDatum[],
  outputs: readonly Readonly<Record<string, TensorData>>[],
): Record<string, number> {
  const differences: number[] = [];
  let sampledSum = 0;
  let squares = 0;
  let sum = 0;
  for (const [index, { datum, mask }] of data.entries()) {
    const trained = outputs[index]?.['logprobs']?.data;
    if (trained?.length !== mask.length) return {};
    const sampled = valuesOf(datum, 'logprobs');
    for (let place = 0; place < mask.length; place++) {
      if (mask[place] === 0) continue;
      const difference = sampled[place]! - trained[place]!;
      differences.push(difference);
      sampledSum += sampled[place]!;
      sum += difference;
      squares += difference * difference;
    }
  }
  const tokens = differences.length;
  if (tokens === 0) return {};
  // The ratio is exp(trainer − sampler); sorting its logarithm gives the same order.
  const sorted = Float32Array.from(differences, (difference) => -difference).sort();
  const quantiles = Object.entries(QUANTILES).map(([name, share]) => [
    `optim/ratio_${name}`,
    Math.exp(sorted[Math.min(tokens - 1, Math.floor(share * tokens))]!),
  ]);
  return {
    'optim/kl_sample_train_v1': sum / tokens,
    'optim/kl_sample_train_v2': squares / (2 * tokens),
    'optim/entropy': -sampledSum / tokens,
    ...(Object.fromEntries(quantiles) as Record<string, number>),
  };
}
