import { forkJoin, map, type Observable, type ObservableInput } from 'rxjs';
import { graded } from './graded.js';
import type { Graded } from '../sampling/rollout.js';

/** One of several rewards: a grader of weight 1, or a grader with its weight. */
export type WeightedReward<A, T> =
  | Grader<A, T>
  | {
      /** What its value counts in the sum; 0 reports it only. */
      readonly weight: number;
      /** Computes the reward. */
      readonly score: Grader<A, T>;
    };

/** Says how good an answer is, at once or later. */
export type Grader<A, T> = (answer: A, task: T) => Graded | ObservableInput<Graded>;

/**
 * Several rewards by name and weight as one grader: their weighted sum, with each as a metric of its name.
 *
 * ```ts
 * const reward = weightedRewards<Answer, Task>({
 *   correct: ({ text }, { answer }) => (text === answer ? 1 : 0),
 *   format: { weight: 0.1, score: ({ termination }) => (termination === 'stop' ? 0 : -1) },
 * })
 * ```
 * All are asked at once. One that throws fails the rollout.
 */
export function weightedRewards<A, T>(
  rewards: Readonly<Record<string, WeightedReward<A, T>>>,
): (answer: A, task: T) => Observable<{ readonly reward: number; readonly metrics: Readonly<Record<string, number>> }> {
  const parts = Object.entries(rewards).map(([name, reward]) => ({
    name,
    ...(typeof reward === 'function' ? { weight: 1, score: reward } : reward),
  }));
  if (parts.length === 0) throw new RangeError('weightedRewards needs at least one reward');
  for (const { name, weight } of parts) {
    if (!Number.isFinite(weight)) throw new RangeError(`the weight of ${name} must be a finite number, got ${weight}`);
  }
  return (answer, task) =>
    forkJoin(
      parts.map(({ name, score }) =>
        graded(
          () => score(answer, task),
          () => `the reward ${name}`,
        ),
      ),
    ).pipe(
      map((said) => {
        const metrics: Record<string, number> = {};
        let reward = 0;
        said.forEach((each, index) => {
          const { name, weight } = parts[index]!;
          reward += weight * each.reward;
          Object.assign(metrics, each.metrics, { [name]: each.reward });
        });
        return { reward, metrics };
      }),
    );
}
