import { catchError, defer, map, type Observable, type ObservableInput, of, type OperatorFunction } from 'rxjs';
import { toObservable } from '../../support/toObservable.js';
import { checkIntegers } from '../../support/checks.js';
import { concatMapAhead } from '../../operators/concatMapAhead.js';
import { reporter } from '../pacing/reporter.js';
import type { RlListener } from '../pacing/rlEvent.js';
import type { Group, Trajectory } from '../sampling/rollout.js';

/** Judges the tries at one task together: a number for each, in their order; at once or later. */
export type GroupReward<T> = (
  trajectories: readonly Trajectory[],
  task: T,
) => readonly number[] | ObservableInput<readonly number[]>;

/** Options of `groupRewards`. */
export interface GroupRewardsOptions {
  /** How many groups are judged at once: an integer ≥ 1. Default 8. */
  readonly concurrency?: number;
  /** Called with groups that could not be judged. Default: none. */
  readonly onEvent?: RlListener | undefined;
}

/**
 * Adds to each trajectory's reward what it is worth beside the others of its group.
 *
 * ```
 * source    -a-b-|                  groups as `rollouts` makes them
 * result    ---x-y-|                in the same order, with new rewards
 * ```
 * Stands between {@link rollouts} and {@link advantages}. The metric `group_reward` has what was added. A group that cannot be judged
 * (a throw, as many numbers as there are not trajectories, no number) is passed on as not viable, with the reason among its failures:
 * it costs itself only. Errors and completion pass. Unsubscribing stops what is being judged. Holds `concurrency` groups.
 */
export function groupRewards<T>(
  reward: GroupReward<T>,
  { concurrency = 8, onEvent }: GroupRewardsOptions = {},
): OperatorFunction<Group<T>, Group<T>> {
  checkIntegers({ concurrency }, 1);
  const report = reporter(onEvent);
  const judge = (group: Group<T>): Observable<Group<T>> => {
    const { trajectories, task, order } = group;
    if (trajectories.length === 0) return of(group);
    return defer(() => toObservable(reward(trajectories, task))).pipe(
      map((values) => withRewards(group, values)),
      catchError((error: unknown) => {
        report({ type: 'rollout-failed', order, index: -1, attempt: 1, final: true, error });
        const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) };
        const failure = { index: -1, name, message: `the group could not be judged: ${message}`, attempts: 1 };
        return of({ ...group, viable: false, failures: [...group.failures, failure] });
      }),
    );
  };
  return (source) => source.pipe(concatMapAhead(judge, { ahead: concurrency - 1 }));
}

function withRewards<T>(group: Group<T>, values: readonly number[]): Group<T> {
  const { trajectories } = group;
  if (values.length !== trajectories.length) {
    throw new RangeError(`${trajectories.length} trajectories need as many rewards, got ${values.length}`);
  }
  const bad = values.findIndex((value) => !Number.isFinite(value));
  if (bad >= 0) throw new RangeError(`the reward of trajectory ${bad} must be a finite number, got ${values[bad]}`);
  return {
    ...group,
    trajectories: trajectories.map((trajectory, index) => ({
      ...trajectory,
      reward: trajectory.reward + values[index]!,
      metrics: { ...trajectory.metrics, group_reward: values[index]! },
    })),
  };
}
