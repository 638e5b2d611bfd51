import { forkJoin, from, map, type Observable, of, switchMap } from 'rxjs';
import { checkFinite, checkPositive } from '../../support/checks.js';
import type { SamplingClient } from '../../client/SamplingClient.js';
import { cancelling } from '../../support/cancelling.js';
import type { ComputesLogprobs } from '../../operators/data/withReference.js';
import type { ModelInput } from '../../wire/modelInput.js';
import { ValidationError } from '../../wire/tinkerError.js';
import type { Agent, Rollout, RolloutHook, Turn } from '../sampling/rollout.js';

/** One of several teachers, and how much its word counts beside the others'. */
export interface WeightedTeacher {
  /** The teacher: anything that computes logprobs, such as a sampling client. */
  readonly teacher: ComputesLogprobs;
  /** A number > 0; weights are divided by their sum. */
  readonly weight: number;
}

/** The teacher of a task: a sampler of any model with the student's tokenizer, or several of them. */
export type Teachers = ComputesLogprobs | readonly WeightedTeacher[];

/** Options of `taught`. */
export interface TaughtOptions<T> {
  /** The teacher, or a function that chooses one for each task. */
  readonly teacher: Teachers | ((task: T) => Teachers);
  /** How much a token pulls for each nat that the teacher finds it less likely than the student did: a number > 0. Default 1. */
  readonly coefficient?: number;
  /** What the teacher reads before the answer, for a teacher that is told more than the student. Default: what the student read. */
  readonly teacherPrompt?: (task: T, turn: Turn) => ModelInput;
}

/**
 * An agent whose tries are graded token by token by a teacher: on-policy distillation, for every agent there is.
 *
 * ```ts
 * const agent = taught(singleTurn<Task>({ renderer, prompt: ({ question }) => question, reward: () => 0 }), { teacher });
 * tasks.pipe(reinforce(trainer, agent, { group: 4, groupsPerBatch: 16, advantages: { method: 'given' } }));
 * ```
 * Every sampled token has the advantage −c · (log p − log t), p being the student's probability when it was sampled and t the
 * teacher's; of several teachers the weighted mean of log t. It is neither centred nor mixed with the agent's reward, which is
 * still reported. A teacher is asked as soon as its rollout is done, while others are sampled. The metric `teacher_kl` is the mean of
 * log p − log t. A teacher that fails costs its rollout, as the agent itself would.
 */
export function taught<T, S = SamplingClient>(agent: Agent<T, S>, options: TaughtOptions<T>): Agent<T, S> {
  const { teacher, coefficient = 1, teacherPrompt = (_: T, { prompt }: Turn) => prompt } = options;
  checkFinite({ coefficient });
  checkPositive({ coefficient });
  const teachersOf = (task: T): readonly WeightedTeacher[] =>
    weighted(typeof teacher === 'function' ? teacher(task) : teacher);
  if (typeof teacher !== 'function') weighted(teacher);

  const graded = (task: T, rollout: Rollout): Observable<Rollout> => {
    const turns = rollout.turns.map((turn): Observable<{ readonly turn: Turn; readonly away: Float32Array }> => {
      if (turn.masked === true || turn.sequence.tokens.length === 0) return of({ turn, away: new Float32Array(0) });
      const asked = teachersOf(task).map((each) => answerLogprobs(each.teacher, teacherPrompt(task, turn), turn));
      return forkJoin(asked).pipe(
        map((found) => {
          const away = apart(turn, found, teachersOf(task));
          return { turn: { ...turn, advantage: away.map((value) => -coefficient * value) }, away };
        }),
      );
    });
    return forkJoin(turns).pipe(
      map((made) => {
        const values = made.flatMap(({ away }) => Array.from(away));
        const mean = values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
        return {
          ...rollout,
          turns: made.map(({ turn }) => turn),
          metrics: { ...rollout.metrics, teacher_kl: mean },
        };
      }),
    );
  };
  const one: RolloutHook<T, S> = (task, policy, context) =>
    from(agent(task, policy, context)).pipe(switchMap((rollout) => graded(task, rollout)));
  if (!('group' in agent)) return one;
  return Object.assign(one, {
    group: (...[task, policy, context]: Parameters<typeof agent.group>) =>
      agent.group(task, policy, context).map((each) => from(each).pipe(switchMap((rollout) => graded(task, rollout)))),
  });
}

/** How likely a teacher finds each token of an answer. */
function answerLogprobs(teacher: ComputesLogprobs, prompt: ModelInput, { sequence }: Turn): Observable<Float32Array> {
  const { tokens } = sequence;
  const whole = prompt.append({ type: 'encoded_text', tokens });
  return cancelling(teacher.computeLogprobs(whole)).pipe(
    map((logprobs) => {
      if (logprobs.length < tokens.length)
        throw new ValidationError(
          `the teacher gave ${logprobs.length} logprobs for an answer of ${tokens.length} tokens`,
        );
      const answered = logprobs.subarray(logprobs.length - tokens.length);
      const bad = answered.findIndex((value) => !Number.isFinite(value));
      if (bad >= 0)
        throw new ValidationError(`the teacher gave token ${bad} of an answer a logprob of ${answered[bad]}`);
      return answered;
    }),
  );
}

/** log p − log t, token by token. */
function apart({ sequence }: Turn, found: readonly Float32Array[], teachers: readonly WeightedTeacher[]): Float32Array {
  const { logprobs } = sequence;
  if (logprobs === undefined) throw new ValidationError('the student was sampled without logprobs');
  return Float32Array.from(logprobs, (value, place) => {
    const told = found.reduce((sum, each, index) => sum + teachers[index]!.weight * each[place]!, 0);
    return value - told;
  });
}

/** Weights that sum to 1. */
function weighted(teachers: Teachers): readonly WeightedTeacher[] {
  if ('computeLogprobs' in teachers) return [{ teacher: teachers, weight: 1 }];
  if (teachers.length === 0) throw new RangeError('there must be at least one teacher');
  for (const { weight } of teachers) {
    if (!(weight > 0 && Number.isFinite(weight))) throw new RangeError(`a teacher's weight must be > 0, got ${weight}`);
  }
  const total = teachers.reduce((sum, { weight }) => sum + weight, 0);
  return teachers.map(({ teacher, weight }) => ({ teacher, weight: weight / total }));
}
