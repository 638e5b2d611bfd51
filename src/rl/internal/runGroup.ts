import {
  catchError,
  defer,
  finalize,
  forkJoin,
  from,
  map,
  type Observable,
  type ObservableInput,
  of,
  retry,
  type SchedulerLike,
  take,
  tap,
  throwError,
  throwIfEmpty,
  timeout,
} from 'rxjs';
import type { Sampleable } from '../../operators/sampleFrom.js';
import type { SamplingParams } from '../../wire/sampling.js';
import { isTinkerError } from '../../wire/tinkerError.js';
import type { LivePolicy } from '../LivePolicy.js';
import type { RlListener } from '../rlEvent.js';
import type { Agent, Group, Rollout, RolloutFailure, Trajectory } from '../rollout.js';
import { RolloutPolicy } from './RolloutPolicy.js';
import { seedFrom } from './seeds.js';

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
  /** Ends the whole stream: no other rollout could succeed either, or the first failure is to end it. */
  readonly fail: (error: unknown) => void;
}

type Outcome = { readonly trajectory: Trajectory } | { readonly failure: RolloutFailure };

/** Failures that every other rollout would meet too. */
const FATAL: ReadonlySet<string> = new Set([
  'authentication',
  'permission_denied',
  'billing',
  'closed',
  'unsupported_version',
]);

/** Tries one task as often as the plan says, all at once, and gives the group when the last try is over. */
export function runGroup<T, S extends Sampleable>(plan: GroupPlan<T, S>, task: T, order: number): Observable<Group<T>> {
  return defer(() => {
    const { size, seed, policy, scheduler, report } = plan;
    const startedMs = scheduler.now();
    const { step } = policy.current!;
    report({ type: 'group-admitted', order, step });
    const shared = startTogether(plan, task, seedFrom(seed, order));
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
      tap(({ trajectories, failures, durationMs }) =>
        report({
          type: 'group-finished',
          order,
          rewards: trajectories.map(({ reward }) => reward),
          failures: failures.length,
          durationMs,
        }),
      ),
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
  { agent, policy, samplingParams, size }: GroupPlan<T, S>,
  task: T,
  seed: number,
): Together | undefined {
  if (!('group' in agent) || size === 1) return undefined;
  const own = new RolloutPolicy(policy, samplingParams, seed);
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

function outcomeOf<T, S extends Sampleable>(
  plan: GroupPlan<T, S>,
  task: T,
  order: number,
  index: number,
  shared: Together | undefined,
): Observable<Outcome> {
  const { agent, policy, retries, scheduler, timeoutMs } = plan;
  const startedMs = scheduler.now();
  let attempts = 0;
  const once = defer((): Observable<Trajectory> => {
    const attempt = attempts++;
    const seed = seedFrom(plan.seed, order, index + 1, attempt);
    const { step } = policy.current!;
    const finished = (rollout: Rollout): Trajectory => {
      check(rollout);
      const steps = rollout.turns.map((turn) => turn.step ?? step);
      return { ...rollout, index, seed, step: Math.min(...steps), durationMs: scheduler.now() - startedMs };
    };
    // What was started together is not started again: later attempts are made alone.
    if (shared !== undefined && attempt === 0) return bounded(from(shared.inputs[index]!)).pipe(map(finished));
    const own = new RolloutPolicy(policy, plan.samplingParams, seed);
    const context = {
      seed,
      index,
      get signal() {
        return own.signal;
      },
    };
    return bounded(defer(() => agent(task, own, context))).pipe(
      map(finished),
      finalize(() => own.end()),
    );
  });
  const bounded = (rollout: Observable<Rollout>): Observable<Rollout> =>
    (timeoutMs === Infinity
      ? rollout
      : rollout.pipe(timeout({ first: timeoutMs, scheduler, with: () => throwError(() => tooSlow(timeoutMs)) }))
    ).pipe(
      take(1),
      throwIfEmpty(() => new Error('the rollout ended without a result')),
    );
  const failed = (error: unknown, final: boolean) => {
    plan.report({ type: 'rollout-failed', order, index, attempt: attempts, final, error });
    if (plan.failFast || (isTinkerError(error) && FATAL.has(error.code))) plan.fail(error);
  };
  const tried =
    retries === 0
      ? once
      : once.pipe(
          retry({
            count: retries,
            delay: (error) => {
              failed(error, false);
              return of(undefined);
            },
          }),
        );
  return tried.pipe(
    map((trajectory): Outcome => ({ trajectory })),
    catchError((error: unknown) => {
      failed(error, true);
      const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) };
      return of<Outcome>({ failure: { index, name, message, attempts } });
    }),
  );
}

function check({ turns, reward }: Rollout): void {
  if (turns.length === 0) throw new TypeError('a rollout needs at least one turn');
  if (!Number.isFinite(reward)) throw new RangeError(`a rollout's reward must be a finite number, got ${reward}`);
  for (const [place, { sequence }] of turns.entries()) {
    if (sequence.logprobs?.length !== sequence.tokens.length) {
      throw new RangeError(
        `turn ${place} has ${sequence.tokens.length} tokens and ${sequence.logprobs?.length ?? 'no'} logprobs`,
      );
    }
    for (const logprob of sequence.logprobs) {
      if (!Number.isFinite(logprob)) throw new RangeError(`turn ${place} has a logprob that is ${logprob}`);
    }
  }
}

/** A rollout that took longer than it may. */
function tooSlow(timeoutMs: number): Error {
  const error = new Error(`the rollout took longer than ${timeoutMs} ms`);
  error.name = 'TimeoutError';
  return error;
}
