import type { Step } from '../../operators/training/step.js';
import type { ScoredGroup } from './advantages.js';
import type { Group } from '../sampling/rollout.js';

/** Resume state of a run, beside its weights: continues without losing or repeating a group. */
export interface RlResume {
  /** How many steps are done. */
  readonly steps: number;
  /** How many tasks are done with: the order of the next group to be trained on. */
  readonly next: number;
  /** Groups sampled and not yet trained on, without their tasks, which are read again. */
  readonly finished: readonly Omit<Group, 'task'>[];
}

/** One step of reinforcement learning, as `grpo` emits it. */
export interface RlStep<T = unknown> extends Step {
  /**
   * What the service gave, and the cookbook's metrics by their names: `env/all/reward/total`, `optim/kl_sample_train_v1`, …
   * @see docs/rl.md
   */
  readonly metrics: Readonly<Record<string, number>>;
  /** Mean reward of all trajectories since the step before, also of groups that taught nothing. */
  readonly reward: number;
  /** All groups since the step before, in order, also those that taught nothing; of very many that did not, the newest eight batches. */
  readonly groups: readonly ScoredGroup<T>[];
  /** With a checkpoint: where the run stands beside the weights saved in it. */
  readonly resume?: RlResume;
}
