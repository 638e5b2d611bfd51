import {
  asyncScheduler,
  concatMap,
  defer,
  EMPTY,
  map,
  Observable,
  type OperatorFunction,
  type SchedulerLike,
  tap,
} from 'rxjs';
import { checkAtLeast, checkIntegers, checkPositive } from '../../support/checks.js';
import type { Renderer } from '../../chat/renderers/core/Renderer.js';
import type { SamplingClient } from '../../client/SamplingClient.js';
import { failurePlan, type FailurePolicy } from '../../operators/flow/FailurePolicy.js';
import { mergeMapWeighted } from '../../operators/flow/mergeMapWeighted.js';
import type { Sampleable } from '../../operators/sampling/sampleFrom.js';
import { runGroup, type GroupPlan } from '../../rl/sampling/runGroup.js';
import { LivePolicy } from '../../rl/pacing/LivePolicy.js';
import type { Agent, Trajectory } from '../../rl/sampling/rollout.js';
import type { SamplingParams } from '../../wire/sampling.js';
import type { Scorer } from '../scorers/scorer.js';
import { distinctIds, exampleId, idNumber } from './internal/exampleId.js';
import { scoreGroup } from './internal/scoreGroup.js';
import { expectedOf, inputText } from '../../chat/datum/taskText.js';
import type { EvalRecord } from './record.js';

/** Options of `evaluate`. */
export interface EvaluateOptions<T, S extends Sampleable = SamplingClient> {
  /** What to sample from. */
  readonly sampler: S;
  /** How good an output is. The first one's score counts, the others are reported. Default: the reward of the rollout. */
  readonly scorers?: readonly Scorer<T>[] | Readonly<Record<string, Scorer<T>>>;
  /** How many answers to each example: an integer ≥ 1. Default 1. */
  readonly samples?: number;
  /** For every sample, if the agent does not say otherwise. Default: the service's own. */
  readonly samplingParams?: SamplingParams;
  /** What all seeds depend on, with the id of the example: an integer. Default 0. */
  readonly seed?: number;
  /** The id of a task. Default: its `id`, else a digest of what it holds. A second one of the same id is `id~2`. */
  readonly id?: (task: T) => string;
  /** What was asked, as text. Default: the task's `prompt`, `question`, `input` or `messages`. */
  readonly input?: (task: T) => string;
  /** What should be said. Default: the task's `expected`, `answer` or `target`, or its last message, of the assistant. */
  readonly expected?: (task: T) => string | undefined;
  /** What was said. Default: `text` of the rollout, which ready environments give, or its last turn read by `renderer`. */
  readonly output?: (trajectory: Trajectory, task: T) => string;
  /** Reads answers if the rollout does not contain their text. */
  readonly renderer?: Renderer;
  /** How many answers may be in flight at once: ≥ 1; an example always runs whole. Default 2000. */
  readonly concurrency?: number;
  /**
   * What an answer that fails does. Default `{ retries: 2 }`: it is asked for again twice, with another seed, and then listed in
   * `failures`. 'fail' ends the stream; `deadLetters` is told of each task that has a failure, also of a scorer.
   */
  readonly onFailure?: FailurePolicy<T>;
  /** How long an answer, and then its scores, may take, in milliseconds. Default one hour. */
  readonly timeoutMs?: number;
  /** Examples that are left out, by id: those that an earlier run has the results of. Default: none. */
  readonly skip?: (id: string) => boolean;
  /** For durations and timeouts. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Asks every example, scores the answers, and emits a record for each example as it finishes.
 *
 * ```
 * source    -a-b-c-|
 * a          -----x|
 * b            -y|
 * c              --z|
 * result    ----y-xz|
 * ```
 * ```ts
 * tasks.pipe(evaluate(answers({ renderer }), { sampler, scorers: [exact()], samples: 4 }), summarize())
 * ```
 * The agent is the one hook of `tinker-rx/rl`. Seeds depend on `seed` and the example's id alone, so the order of the examples, a
 * resume, or other examples beside it change no answer.
 *
 * An answer or a scorer that fails costs its sample only: it is listed in `failures`, apart from wrong answers. Failures that all would
 * meet (a refused key, a closed client) end the stream, as do errors of the source. Completes when the source and all examples have.
 * Unsubscribing cancels every sample in flight. Holds the examples in flight, and their ids; its `Gate` is closed while it is full.
 */
export function evaluate<T, S extends Sampleable = SamplingClient>(
  agent: Agent<T, S>,
  options: EvaluateOptions<T, S>,
): OperatorFunction<T, EvalRecord> {
  const {
    sampler,
    samples = 1,
    seed = 0,
    onFailure = { retries: 2 },
    timeoutMs = 3_600_000,
    concurrency = 2000,
  } = options;
  const { id = exampleId, input = inputText, expected = expectedOf, skip = () => false } = options;
  const { samplingParams, scheduler = asyncScheduler } = options;
  checkIntegers({ samples }, 1);
  const { retries, then, deadLetters } = failurePlan(onFailure, 'skip');
  checkIntegers({ seed });
  checkAtLeast({ concurrency }, 1);
  checkPositive({ timeoutMs });
  return (source) =>
    new Observable<EvalRecord>((subscriber) => {
      const policy = new LivePolicy<S>();
      policy.publish(sampler, 0);
      const plan: GroupPlan<T, S> = {
        ...{ agent, policy, size: samples, seed, samplingParams, retries, timeoutMs, scheduler },
        ...{ failFast: then === 'fail', smallest: 1, tags: () => [], report: () => undefined },
        fail: (error) => subscriber.error(error),
      };
      const distinct = distinctIds();
      const ask = ({ task, name }: Named<T>): Observable<EvalRecord> =>
        defer(() => {
          const wanted = expected(task);
          const facts = { id: name, input: input(task), ...(wanted === undefined ? {} : { expected: wanted }) };
          return runGroup(plan, task, idNumber(name)).pipe(
            concatMap((group) => scoreGroup(group, facts, { ...options, timeoutMs, scheduler })),
            tap(({ failures: [error] }) => {
              if (error !== undefined) deadLetters?.({ item: task, error, attempts: retries + 1 });
            }),
          );
        });
      return source
        .pipe(
          map((task): Named<T> => ({ task, name: distinct(id(task)) })),
          concatMap((named) => (skip(named.name) ? EMPTY : [named])),
          mergeMapWeighted(ask, {
            ...{ weight: () => 1, budget: Infinity },
            concurrency: Math.max(1, Math.floor(concurrency / samples)),
          }),
        )
        .subscribe(subscriber);
    });
}

interface Named<T> {
  readonly task: T;
  readonly name: string;
}
