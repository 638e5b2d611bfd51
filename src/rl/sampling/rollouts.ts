import {
  asyncScheduler,
  finalize,
  isObservable,
  map,
  Observable,
  of,
  type OperatorFunction,
  type SchedulerLike,
  skip,
  tap,
  throwIfEmpty,
} from 'rxjs';
import { checkAtLeast, checkIntegers, checkPositive } from '../../support/checks.js';
import type { SamplingClient } from '../../client/SamplingClient.js';
import { failurePlan, type FailurePolicy } from '../../operators/flow/FailurePolicy.js';
import { concatMapAhead } from '../../operators/flow/concatMapAhead.js';
import { mergeMapWeighted } from '../../operators/flow/mergeMapWeighted.js';
import type { Sampleable } from '../../operators/sampling/sampleFrom.js';
import type { SamplingParams } from '../../wire/sampling.js';
import { admit } from '../pacing/admit.js';
import { reporter } from '../pacing/reporter.js';
import { watchArrival } from '../pacing/watchArrival.js';
import { runGroup, type GroupPlan } from './runGroup.js';
import { LivePolicy } from '../pacing/LivePolicy.js';
import type { RlListener } from '../pacing/rlEvent.js';
import { FailureKinds } from './FailureKinds.js';
import type { RlResume } from '../learning/rlStep.js';
import type { Agent, Group } from './rollout.js';

/** Options of `rollouts`. */
export interface RolloutsOptions<T, S extends Sampleable = SamplingClient> {
  /** What to sample from: a sampler, a stream of them of which the newest counts, or a {@link LivePolicy} that `grpo` publishes to. */
  readonly policy: S | Observable<S> | LivePolicy<S>;
  /** How many rollouts are made of each task: an integer ≥ 1. */
  readonly group: number;
  /** For every sample, where the agent does not say otherwise. Default: the service's own. */
  readonly samplingParams?: SamplingParams;
  /** What all seeds depend on: an integer. Default 0. */
  readonly seed?: number;
  /** How many rollouts may be in flight at once: ≥ 1; a group always runs whole. Default 2000. */
  readonly concurrency?: number;
  /**
   * What a rollout that fails does. Default 'skip': it costs itself only. 'fail' ends the stream at the first; `retries` tries it again with
   * another seed; `deadLetters` is told of each task of which too few rollouts succeeded.
   */
  readonly onFailure?: FailurePolicy<T>;
  /** How many rollouts of a group must succeed for it to be learned from: an integer from 1 to `group`. Default ⌈¾ of it⌉. */
  readonly smallestGroup?: number;
  /** How long an attempt may take, in milliseconds; a slower one fails. Default one hour; `Infinity` for no limit. */
  readonly timeoutMs?: number;
  /** What kind of task it is, for metrics by kind. Default: what the rollouts say. */
  readonly tags?: (task: T) => readonly string[];
  /** Where an earlier run stopped: tasks done are skipped, groups that were sampled are not sampled again. Default: at the start. */
  readonly resume?: RlResume | undefined;
  /** Called with an event for every wait, group and failure. Default: none. */
  readonly onEvent?: RlListener | undefined;
  /** For durations and timeouts. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

const HOUR_MS = 3_600_000;

/**
 * Tries every task `group` times with an agent and emits the tries as a {@link Group}, with their rewards.
 *
 * ```
 * source    -a-b-c-|                group 2
 * a          --xx|
 * b            -----yy|
 * c              -zz|
 * result    ---x----yz|             with a live policy: in order
 * result    ---x--z-y--|            with a sampler: as they finish
 * ```
 * Works alone: with a sampler it is a graded sampling job. With a {@link LivePolicy}, tasks are admitted only as far ahead
 * of training as `grpo` allows, and groups come out in the order of their tasks, so that slow ones are not starved.
 *
 * A rollout that throws, hangs, or has no finite reward costs itself: it is listed in the group's `failures`. A warning reports the
 * first of each kind, with its line in your code, and at the end how many there were.
 * Failures that all rollouts would meet (a refused key, a closed client) end the stream, as do errors of the source and of
 * a stream of samplers. Completes when the source and all groups have. Unsubscribing cancels every sample in flight and
 * aborts the signals. Holds the tasks in flight and finished groups that wait for their turn; its `Gate` is closed
 * while no more may be admitted.
 *
 * @see grpo
 */
export function rollouts<T, S extends Sampleable = SamplingClient>(
  agent: Agent<T, S>,
  options: RolloutsOptions<T, S>,
): OperatorFunction<T, Group<T>> {
  const { policy, group: size, seed = 0, concurrency = 2000, onFailure = 'skip', timeoutMs = HOUR_MS } = options;
  const {
    smallestGroup: smallest = Math.ceil(0.75 * size),
    tags = () => [],
    resume,
    scheduler = asyncScheduler,
  } = options;
  checkIntegers({ group: size, smallestGroup: smallest }, 1);
  const { retries, then, deadLetters } = failurePlan(onFailure, 'skip');
  const failFast = then === 'fail';
  if (smallest > size) throw new RangeError(`smallestGroup must be <= group (${size}), got ${smallest}`);
  checkIntegers({ seed });
  checkAtLeast({ concurrency }, 1);
  checkPositive({ timeoutMs });
  const groups = Math.max(1, Math.floor(concurrency / size));
  return (source) =>
    new Observable<Group<T>>((subscriber) => {
      const report = reporter(options.onEvent);
      const failed = new FailureKinds(report);
      const live = policy instanceof LivePolicy ? policy : new LivePolicy<S>();
      const fail = (error: unknown) => subscriber.error(error);
      const { samplingParams } = options;
      const plan: GroupPlan<T, S> = {
        ...{ agent, policy: live, size, seed, samplingParams, retries, failFast, smallest, timeoutMs, tags },
        ...{ scheduler, report, fail, failed, deadLetters },
      };
      const first = resume?.next ?? 0;
      const sampled = new Map(resume?.finished.map((group) => [group.order, group]));
      const numbered = source.pipe(
        skip(first),
        map((task, place) => ({ task, order: first + place })),
      );
      const project = ({ task, order }: { readonly task: T; readonly order: number }): Observable<Group<T>> => {
        const known = sampled.get(order);
        sampled.delete(order);
        return (known === undefined ? runGroup(plan, task, order) : of({ ...known, task })).pipe(
          tap((group) => live.pace.sampled(group)),
        );
      };
      const result =
        policy instanceof LivePolicy
          ? watchArrival(
              numbered.pipe(admit(policy, report), concatMapAhead(project, { ahead: groups - 1 })),
              live.pace,
              plan,
            )
          : numbered.pipe(
              mergeMapWeighted(
                reportWhenFull(({ task, order }) => runGroup(plan, task, order), groups, report),
                {
                  weight: () => 1,
                  // Nothing is admitted before the first sampler, as nothing is before the first budget.
                  budget: samplersInto(live, policy, report).pipe(map(() => Infinity)),
                  concurrency: groups,
                },
              ),
            );
      return result.pipe(finalize(() => failed.end())).subscribe(subscriber);
    });
}

/** Reports `rl-waiting` at the concurrency limit. */
function reportWhenFull<A, B>(
  start: (value: A) => Observable<B>,
  room: number,
  report: RlListener,
): (value: A) => Observable<B> {
  let admitted = 0;
  let done = 0;
  return (value) => {
    admitted++;
    if (admitted - done === room) report({ type: 'rl-waiting', for: 'concurrency', admitted, done });
    return start(value).pipe(tap(() => done++));
  };
}

/** Publishes what comes, counting from 0. */
function samplersInto<S>(live: LivePolicy<S>, policy: S | Observable<S>, report: RlListener): Observable<S> {
  if (!isObservable(policy)) return of(policy).pipe(tap((sampler) => live.publish(sampler, 0)));
  report({ type: 'rl-waiting', for: 'policy', admitted: 0, done: 0 });
  return policy.pipe(
    throwIfEmpty(() => new Error('the stream of samplers ended without a sampler')),
    tap((sampler) => live.publish(sampler, (live.current?.step ?? -1) + 1)),
  );
}
