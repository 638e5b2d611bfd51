import { TensorData } from '../../wire/index.js';
import type { EngineDatum, EngineTensor, LossConfig } from '../engine/types.js';

/** The part that each token has in the loss of a datum, for the losses that SkyRL has. */
export function elementwiseLoss(
  loss: string,
  logprobs: EngineTensor,
  { inputs }: EngineDatum,
  config: LossConfig,
): TensorData {
  const values = (name: string, fallback: number) => {
    const data = inputs[name]?.data;
    return (index: number) => data?.[index] ?? fallback;
  };
  const bound = (name: string, fallback: number) => values(name, Number(config[name] ?? fallback));
  const [weight, advantage, before] = [values('weights', 1), values('advantages', 0), values('logprobs', 0)];
  const [low, high] = [bound('clip_low_threshold', 0.8), bound('clip_high_threshold', 1.2)];
  const term = (p: number, index: number): number => {
    if (loss === 'cross_entropy') return weight(index) === 0 ? 0 : -p * weight(index);
    const ratio = Math.exp(p - before(index));
    const clipped = Math.min(Math.max(ratio, low(index)), high(index));
    if (loss === 'ppo') return -Math.min(ratio * advantage(index), clipped * advantage(index));
    return loss === 'cispo' ? -clipped * p * advantage(index) : -ratio * advantage(index);
  };
  const data = Float32Array.from(logprobs.data, term);
  return new TensorData({ dtype: 'float32', data, shape: logprobs.shape });
}
