import type { ObservableInput } from 'rxjs';
import type { SampleOptions, SamplingClient } from '../../client/SamplingClient.js';
import type { TinkerFuture } from '../../client/TinkerFuture.js';
import type { ModelInput } from '../../wire/modelInput.js';
import type { SampledSequence, SamplingParams } from '../../wire/sampling.js';

/** One thing the model said, exactly as it was sampled: nothing in it is ever encoded again. */
export interface Turn {
  /** Everything the model saw. */
  readonly prompt: ModelInput;
  /** The sampled ids with their log probabilities. */
  readonly sequence: SampledSequence;
  /** How many steps the weights held that sampled it. Default: those of the newest weights when its rollout began. */
  readonly step?: number;
  /** Whether it takes no part in training: its tokens have mask and advantage 0. Default: no. */
  readonly masked?: boolean;
  /** Its own advantage, for all its tokens or one each; used by `advantages({ method: 'given' })` only. */
  readonly advantage?: number | ArrayLike<number>;
  /** How sampling differed from the model's own distribution, for example `temperature 0.7`. Absent if it did not. */
  readonly altered?: string;
}

/** What one try at a task came to. */
export interface Rollout {
  /** What the model said, in order: at least one turn. */
  readonly turns: readonly Turn[];
  /** How good it was: a finite number. */
  readonly reward: number;
  /** The model's last answer as text, without reasoning. Ready environments give it; in a custom rollout it is what you give. */
  readonly text?: string;
  /** Numbers worth knowing. Their means go over all trajectories: one that lacks a name counts as 0. */
  readonly metrics?: Readonly<Record<string, number>>;
  /** What kind of task it was; metrics are also given for each tag. */
  readonly tags?: readonly string[];
  /** Anything a reader of the log may want, a transcript for example. Goes into the log as JSON. */
  readonly logs?: Readonly<Record<string, unknown>>;
}

/** What a rollout samples from: the newest weights there are, whenever it asks. */
export interface Policy<S = SamplingClient> {
  /** How many steps the newest weights hold. */
  readonly step: number;
  /** The newest sampler, to hand on (`getSamplerHandle()`); what is sampled from it directly is not followed. */
  readonly sampler: S;
  /** Samples `numSamples` continuations from the newest weights: a turn each. Cancelled when the rollout ends. */
  sample(options: SampleOptions): TinkerFuture<readonly Turn[]>;
  /** Samples one continuation from the newest weights. Cancelled when the rollout ends. */
  turn(prompt: ModelInput, samplingParams?: SamplingParams): TinkerFuture<Turn>;
}

/** What a rollout is told beside its task. */
export interface RolloutContext {
  /** Aborted when the rollout is no longer needed. */
  readonly signal: AbortSignal;
  /** Depends on the run's seed, the task's place, the rollout's place in its group and the attempt: on nothing else. */
  readonly seed: number;
  /** Its place in the group, counted from 0. */
  readonly index: number;
}

/** The one hook: tries a task once. It may return a promise, an Observable, or anything RxJS takes for one. */
export type RolloutHook<T, S = SamplingClient> = (
  task: T,
  policy: Policy<S>,
  context: RolloutContext,
) => ObservableInput<Rollout>;

/** What a whole group is told beside its task. */
export interface GroupContext {
  /** Aborted when the group is no longer needed. */
  readonly signal: AbortSignal;
  /** The seed of the group's request. */
  readonly seed: number;
  /** How many rollouts are wanted. */
  readonly size: number;
}

/** A hook that can also try a task many times at once, in one request for example: an input for each rollout. */
export interface GroupAgent<T, S = SamplingClient> extends RolloutHook<T, S> {
  /** Starts the rollouts of one group: one observable per rollout. */
  readonly group: (task: T, policy: Policy<S>, context: GroupContext) => readonly ObservableInput<Rollout>[];
}

/** Tries tasks: a plain function, or one of the ready environments. */
export type Agent<T, S = SamplingClient> = RolloutHook<T, S> | GroupAgent<T, S>;

/** A rollout that succeeded. */
export interface Trajectory extends Rollout {
  /** Its place in the group, counted from 0. */
  readonly index: number;
  /** The seed it was given. */
  readonly seed: number;
  /** How many steps the oldest weights held that it was sampled from. */
  readonly step: number;
  /** How long it took, in milliseconds, with the attempts before it. */
  readonly durationMs: number;
}

/** A rollout that failed, after all its attempts. */
export interface RolloutFailure {
  /** Its place in the group, counted from 0. */
  readonly index: number;
  /** The name of the last error: `TimeoutError`, … */
  readonly name: string;
  /** What the last error says. */
  readonly message: string;
  /** Where in your code it was thrown, as `file:line:column`, if the error tells. */
  readonly place?: string;
  /** How many attempts were made. */
  readonly attempts: number;
}

/** All tries at one task. */
export interface Group<T = unknown> {
  /** The task the group worked on. */
  readonly task: T;
  /** The task's place in the stream of all tasks, counted from 0, also in a run that was resumed. */
  readonly order: number;
  /** Those that succeeded. */
  readonly trajectories: readonly Trajectory[];
  /** Those that did not. */
  readonly failures: readonly RolloutFailure[];
  /** Whether enough of them succeeded to learn from. */
  readonly viable: boolean;
  /** What kind of task it is: what `tags` of `rollouts` says, and what its trajectories say. */
  readonly tags: readonly string[];
  /** From its admission to its last rollout, in milliseconds. */
  readonly durationMs: number;
}

/** What a grader gives: a number, or a number with what else is worth knowing. `true` is 1 and `false` is 0. */
export type Graded =
  | number
  | boolean
  | {
      /** The reward: larger is better. */
      readonly reward: number | boolean;
      /** Numbers to report beside it, by name. Default: none. */
      readonly metrics?: Readonly<Record<string, number>>;
    };
