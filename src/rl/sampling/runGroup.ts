import {
  defer,
  finalize,
  forkJoin,
  from,
  map,
  Observable,
  type ObservableInput,
  type SchedulerLike,
  Subscription,
  tap,
  throwError,
} from 'rxjs';
import { longTimer } from '../../support/longTimer.js';
import { failsForAll, type FailurePlan } from '../../operators/flow/FailurePolicy.js';
import type { Sampleable } from '../../operators/sampling/sampleFrom.js';
import type { SamplingParams } from '../../wire/sampling.js';
import type { LivePolicy } from '../pacing/LivePolicy.js';
import type { RlListener } from '../pacing/rlEvent.js';
import type { FailureKinds } from './FailureKinds.js';
import type { Agent, Group, Rollout, RolloutFailure, Trajectory } from './rollout.js';
import { RolloutPolicy } from './RolloutPolicy.js';
import { seedFrom } from '../../support/random.js';
import { tooSlow } from './failAfter.js';
import { failureOf } from './ownPlace.js';
import { numberOf } from '../rewards/numberOf.js';

/** How groups of one run are made. */
export interface GroupPlan<T, S extends Sampleable> {
  readonly agent: Agent<T, S>;
  readonly policy: LivePolicy<S>;
  readonly size: number;
  readonly seed: number;
  readonly samplingParams: SamplingParams | undefined;
  readonly retries: number;
  readonly failFast: boolean;
  readonly smallest: number;
  readonly timeoutMs: number;
  readonly tags: (task: T) => readonly string[];
  readonly scheduler: SchedulerLike;
  readonly report: RlListener;
  /** Counts rollouts that failed for good. */
  readonly failed?: FailureKinds;
  /** Told of a task of which too few rollouts succeeded, and of the first failure of it. */
  readonly deadLetters?: FailurePlan<T>['deadLetters'] | undefined;
  /** Ends the whole stream: no other rollout could succeed either, or the first failure is to end it. */
  readonly fail: (error: unknown) => void;
}

type Outcome = { readonly trajectory: Trajectory } | { readonly failure: RolloutFailure };

/** Tries one task as often as the plan says, all at once, and gives the group when the last try is over. */
export function runGroup<T, S extends Sampleable>(plan: GroupPlan<T, S>, task: T, order: number): Observable<Group<T>> {
  return defer(() => {
    const { size, seed, policy, scheduler, report } = plan;
    const startedMs = scheduler.now();
    const { step } = policy.current!;
    report({ type: 'group-admitted', order, step });
    const shared = startTogether(plan, task, order, seedFrom(seed, order));
    const outcomes = Array.from({ length: size }, (_, index) => outcomeOf(plan, task, order, index, shared));
    return forkJoin(outcomes).pipe(
      map((settled): Group<T> => {
        const trajectories = settled.flatMap((each) => ('trajectory' in each ? [each.trajectory] : []));
        const failures = settled.flatMap((each) => ('failure' in each ? [each.failure] : []));
        const tags = new Set([...plan.tags(task), ...trajectories.flatMap((each) => each.tags ?? [])]);
        const durationMs = scheduler.now() - startedMs;
        const viable = trajectories.length >= plan.smallest;
        return { task, order, trajectories, failures, viable, tags: [...tags], durationMs };
      }),
      tap(({ trajectories, failures, durationMs, viable }) => {
        const rewards = trajectories.map(({ reward }) => reward);
        report({ type: 'group-finished', order, rewards, failures: failures.length, durationMs });
        const [first] = failures;
        if (!viable && first !== undefined) plan.deadLetters?.({ item: task, error: first, attempts: first.attempts });
      }),
      finalize(() => shared?.end()),
    );
  });
}

/** The rollouts that an agent starts together, in one request for example. */
interface Together {
  readonly inputs: readonly ObservableInput<Rollout>[];
  end(): void;
}

function startTogether<T, S extends Sampleable>(
  { agent, policy, samplingParams, size, report }: GroupPlan<T, S>,
  task: T,
  order: number,
  seed: number,
): Together | undefined {
  if (!('group' in agent) || size === 1) return undefined;
  const own = new RolloutPolicy(policy, samplingParams, seed, (event) => report({ ...event, order, index: undefined }));
  const end = () => own.end();
  try {
    const context = {
      seed,
      size,
      get signal() {
        return own.signal;
      },
    };
    const inputs = agent.group(task, own, context);
    if (inputs.length === size) return { inputs, end };
    throw new RangeError(`the agent gave ${inputs.length} rollouts for a group of ${size}`);
  } catch (error) {
    return { inputs: Array.from({ length: size }, () => throwError(() => error)), end };
  }
}

/** One rollout of a group. Written by hand: very many may be in flight, and a chain of operators for each is large. */
function outcomeOf<T, S extends Sampleable>(
  plan: GroupPlan<T, S>,
  task: T,
  order: number,
  index: number,
  shared: Together | undefined,
): Observable<Outcome> {
  return new Observable((subscriber) => {
    const { scheduler, timeoutMs } = plan;
    const startedMs = scheduler.now();
    let attempts = 0;
    let running: Subscription | undefined;
    subscriber.add(() => running?.unsubscribe());

    const fail = (error: unknown) => {
      running?.unsubscribe();
      if (subscriber.closed) return;
      const final = attempts > plan.retries;
      plan.report({ type: 'rollout-failed', order, index, attempt: attempts, final, error });
      if ((final && plan.failFast) || failsForAll(error)) plan.fail(error);
      if (subscriber.closed) return;
      if (!final) return attempt();
      plan.failed?.add(error);
      subscriber.next({ failure: failureOf(error, index, attempts) });
      subscriber.complete();
    };

    const attempt = () => {
      const number = attempts++;
      const seed = seedFrom(plan.seed, order, index + 1, number);
      const { step } = plan.policy.current!;
      const own = new Subscription();
      running = own;
      plan.report({ type: 'rollout-started', order, index, attempt: attempts });
      const succeed = (given: Rollout) => {
        let rollout: Rollout;
        try {
          rollout = checked(given);
        } catch (error) {
          return fail(error);
        }
        const oldest = rollout.turns.reduce((least, turn) => Math.min(least, turn.step ?? step), Infinity);
        own.unsubscribe();
        const { turns, reward } = rollout;
        const tokens = turns.reduce((sum, { sequence }) => sum + sequence.tokens.length, 0);
        plan.report({ type: 'rollout-finished', order, index, reward, turns: turns.length, tokens });
        subscriber.next({
          trajectory: { ...rollout, index, seed, step: oldest, durationMs: scheduler.now() - startedMs },
        });
        subscriber.complete();
      };
      const observer = {
        next: (rollout: Rollout) => (own.closed ? undefined : succeed(rollout)),
        error: (error: unknown) => (own.closed ? undefined : fail(error)),
        complete: () => (own.closed ? undefined : fail(new Error('the rollout ended without a result'))),
      };
      own.add(longTimer(timeoutMs, scheduler).subscribe(() => fail(tooSlow('the rollout', timeoutMs))));
      try {
        // What was started together is not started again: later attempts are made alone.
        const input =
          shared !== undefined && number === 0
            ? shared.inputs[index]!
            : startAlone(plan, task, { order, seed, index }, own);
        own.add(from(input).subscribe(observer));
      } catch (error) {
        fail(error);
      }
    };
    attempt();
  });
}

/** Calls the hook; what it asks for ends with `own`. */
function startAlone<T, S extends Sampleable>(
  { agent, policy, samplingParams, report }: GroupPlan<T, S>,
  task: T,
  { order, seed, index }: { readonly order: number; readonly seed: number; readonly index: number },
  own: Subscription,
): ObservableInput<Rollout> {
  const mine = new RolloutPolicy(policy, samplingParams, seed, (event) => report({ ...event, order, index }));
  own.add(() => mine.end());
  return agent(task, mine, {
    seed,
    index,
    get signal() {
      return mine.signal;
    },
  });
}

/** The rollout with its reward as a number. @throws TypeError or RangeError for one that cannot be trained on */
function checked(rollout: Rollout): Rollout {
  if (rollout?.turns === undefined || rollout.turns.length === 0)
    throw new TypeError('a rollout needs at least one turn');
  const reward = numberOf(rollout.reward, "a rollout's reward", 'a finite number, true or false');
  for (const [place, { sequence }] of rollout.turns.entries()) {
    if (sequence.logprobs?.length !== sequence.tokens.length) {
      throw new RangeError(
        `turn ${place} has ${sequence.tokens.length} tokens and ${sequence.logprobs?.length ?? 'no'} logprobs`,
      );
    }
    for (const logprob of sequence.logprobs) {
      if (!Number.isFinite(logprob)) throw new RangeError(`turn ${place} has a logprob that is ${logprob}`);
    }
  }
  return reward === rollout.reward ? rollout : { ...rollout, reward };
}
