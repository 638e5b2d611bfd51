import {
  asyncScheduler,
  catchError,
  defer,
  finalize,
  map,
  type Observable,
  type ObservableInput,
  of,
  type OperatorFunction,
  type SchedulerLike,
} from 'rxjs';
import { checkIntegers, checkPositive } from '../../support/checks.js';
import { toObservable } from '../../support/toObservable.js';
import { concatMapAhead } from '../../operators/flow/concatMapAhead.js';
import { reporter } from '../pacing/reporter.js';
import { failAfter } from '../sampling/failAfter.js';
import { FailureKinds } from '../sampling/FailureKinds.js';
import { failureOf } from '../sampling/ownPlace.js';
import { numberOf } from './numberOf.js';
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
  /** How long it may take to judge a group, in milliseconds; a group that takes longer fails. Default one hour; `Infinity` for no limit. */
  readonly timeoutMs?: number;
  /** Called with groups that could not be judged. Default: warnings are printed on stderr. */
  readonly onEvent?: RlListener | undefined;
  /** For the timeout. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Adds to each trajectory's reward what it is worth beside the others of its group.
 *
 * ```
 * source    -a-b-|                  groups as `rollouts` makes them
 * result    ---x-y-|                in the same order, with new rewards
 * ```
 * Stands between {@link rollouts} and {@link advantages}. The metric `group_reward` has what was added. A group that cannot be judged
 * (a throw, longer than `timeoutMs`, another count of numbers than of trajectories, no number) is passed on as not viable, with the reason among its failures:
 * it costs itself only, and the first of each kind is a warning. Errors and completion pass. Unsubscribing stops what is being judged. Holds `concurrency` groups.
 */
export function groupRewards<T>(
  reward: GroupReward<T>,
  { concurrency = 8, timeoutMs = 3_600_000, onEvent, scheduler = asyncScheduler }: GroupRewardsOptions = {},
): OperatorFunction<Group<T>, Group<T>> {
  checkIntegers({ concurrency }, 1);
  checkPositive({ timeoutMs });
  const report = reporter(onEvent);
  const judge = (group: Group<T>, failed: FailureKinds): Observable<Group<T>> => {
    const { trajectories, task, order } = group;
    if (trajectories.length === 0) return of(group);
    const judged = defer(() => toObservable(reward(trajectories, task)));
    return failAfter(judged, 'judging the group', timeoutMs, scheduler).pipe(
      map((values) => withRewards(group, values)),
      catchError((error: unknown) => {
        report({ type: 'rollout-failed', order, index: -1, attempt: 1, final: true, error });
        failed.add(error);
        const failure = failureOf(error, -1, 1);
        const message = `the group could not be judged: ${failure.message}`;
        return of({ ...group, viable: false, failures: [...group.failures, { ...failure, message }] });
      }),
    );
  };
  return (source) =>
    defer(() => {
      const failed = new FailureKinds(report);
      return source.pipe(
        concatMapAhead((group: Group<T>) => judge(group, failed), { ahead: concurrency - 1 }),
        finalize(() => failed.end()),
      );
    });
}

function withRewards<T>(group: Group<T>, values: readonly number[]): Group<T> {
  const { trajectories } = group;
  if (values.length !== trajectories.length) {
    throw new RangeError(`${trajectories.length} trajectories need as many rewards, got ${values.length}`);
  }
  const rewards = values.map((value, index) =>
    numberOf(value, `the reward of trajectory ${index}`, 'a finite number, true or false'),
  );
  return {
    ...group,
    trajectories: trajectories.map((trajectory, index) => ({
      ...trajectory,
      reward: trajectory.reward + rewards[index]!,
      metrics: { ...trajectory.metrics, group_reward: rewards[index]! },
    })),
  };
}
