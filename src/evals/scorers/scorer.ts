import type { ObservableInput } from 'rxjs';
import type { Trajectory } from '../../rl/sampling/rollout.js';

/** What a scorer is given. Scorers of the npm package `autoevals` take the same names. */
export interface ScoreArgs<T = unknown> {
  /** What was asked, as text. */
  readonly input: string;
  /** What the model said. */
  readonly output: string;
  /** What it should have said, if the task tells. */
  readonly expected?: string;
  /** The task itself. */
  readonly task: T;
  /** The whole try: its turns, reward and metrics. */
  readonly trajectory: Trajectory;
}

/** A score with its name, in the shape of `autoevals`. */
export interface Score {
  /** The score's name. Default: the scorer's. */
  readonly name?: string;
  /** From 0 to 1 as a rule; null: not scored. */
  readonly score: number | boolean | null;
  /** Anything worth keeping about it. Default: nothing. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  /** Why there is no score, if the scorer failed. */
  readonly error?: unknown;
}

/** Says how good an output is, at once or later. `true` is 1 and `false` is 0. */
export type Scorer<T = unknown> = (
  args: ScoreArgs<T>,
) => number | boolean | Score | ObservableInput<number | boolean | Score>;
