import { defer, type OperatorFunction } from 'rxjs';
import type { SamplingClient } from '../client/SamplingClient.js';
import type { Sampleable } from '../operators/sampleFrom.js';
import { advantages } from './advantages.js';
import { grpo, type GrpoOptions, type RlTrainer } from './grpo.js';
import { LivePolicy } from './LivePolicy.js';
import type { RlStep } from './rlStep.js';
import type { Agent } from './rollout.js';
import { rollouts, type RolloutsOptions } from './rollouts.js';

export interface ReinforceOptions<T, S extends Sampleable = SamplingClient>
  extends Omit<RolloutsOptions<T, S>, 'policy'>, Omit<GrpoOptions<S>, 'policy' | 'scheduler' | 'resume' | 'onEvent'> {}

/**
 * Reinforcement learning in one call: tries tasks with an agent, and trains on what it learns from them.
 *
 * ```ts
 * tasks.pipe(reinforce(trainer, agent, { group: 16, groupsPerBatch: 8, adam: { learningRate: 1e-4 } }))
 * ```
 * The same as `rollouts`, `advantages` and `grpo` around one {@link LivePolicy}; takes the options of all three, and behaves
 * as they do on errors, completion and unsubscribing.
 */
export function reinforce<T, S extends Sampleable = SamplingClient>(
  trainer: RlTrainer<S>,
  agent: Agent<T, S>,
  options: ReinforceOptions<T, S>,
): OperatorFunction<T, RlStep<T>> {
  const pipeline = (policy: LivePolicy<S>): OperatorFunction<T, RlStep<T>> => {
    const sampling = rollouts<T, S>(agent, { ...options, policy });
    const training = grpo<T, S>(trainer, { ...options, policy });
    return (source) => source.pipe(sampling, advantages<T>(options.advantages), training);
  };
  // Options are checked at the call; each subscriber has a policy of its own.
  pipeline(new LivePolicy<S>());
  return (source) => defer(() => source.pipe(pipeline(new LivePolicy<S>())));
}
