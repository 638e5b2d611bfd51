import type { ObservableInput } from 'rxjs';
import type { Answer } from '../environments/singleTurn.js';
import type { Graded } from '../sampling/rollout.js';

/** A row of a file of tasks. */
export type TaskRow = Readonly<Record<string, unknown>>;

/**
 * What a reward module exports as its default, for `tinker-rx grpo --reward`: how good an answer to a task is.
 *
 * ```ts
 * const reward: Reward<{ readonly answer: string }> = ({ text }, { answer }) => (text.trim() === answer ? 1 : 0);
 * ```
 * The module ends with `export default reward`. At once, or later as a promise or an Observable. `true` counts as 1, `false` as 0.
 */
export type Reward<T = TaskRow> = (answer: Answer, task: T) => Graded | ObservableInput<Graded>;
