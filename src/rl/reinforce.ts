import { defer, identity, type Observable, type OperatorFunction } from 'rxjs';
import type { SamplingClient } from '../client/SamplingClient.js';
import { named } from '../operators/pressure/named.js';
import type { Sampleable } from '../operators/sampling/sampleFrom.js';
import { advantages } from './learning/advantages.js';
import { type GroupReward, groupRewards } from './rewards/groupRewards.js';
import { grpo } from './learning/grpo.js';
import type { GrpoOptions, RlTrainer } from './learning/GrpoOptions.js';
import { LivePolicy } from './pacing/LivePolicy.js';
import type { RlStep } from './learning/rlStep.js';
import type { Agent, Group } from './sampling/rollout.js';
import { rollouts, type RolloutsOptions } from './sampling/rollouts.js';

/** Options of `reinforce`. */
export interface ReinforceOptions<T, S extends Sampleable = SamplingClient>
  extends Omit<RolloutsOptions<T, S>, 'policy'>, Omit<GrpoOptions<S>, 'policy' | 'scheduler' | 'resume' | 'onEvent'> {
  /** Judges the tries at a task together; what it gives is added to their rewards. Default: nothing is. */
  readonly groupReward?: GroupReward<T>;
}

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
    const { groupReward, timeoutMs, onEvent, scheduler } = options;
    const judging =
      groupReward === undefined
        ? identity<Observable<Group<T>>>
        : named(
            'group rewards',
            groupRewards(groupReward, {
              onEvent,
              ...(timeoutMs === undefined ? {} : { timeoutMs }),
              ...(scheduler === undefined ? {} : { scheduler }),
            }),
          );
    return (source) =>
      source.pipe(named('rollouts', sampling), judging, advantages<T>(options.advantages), named('train', training));
  };
  // Options are checked at the call; each subscriber has a separate policy.
  pipeline(new LivePolicy<S>());
  return (source) => defer(() => source.pipe(pipeline(new LivePolicy<S>())));
}
