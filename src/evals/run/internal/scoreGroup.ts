import { catchError, defer, forkJoin, map, type Observable, of, type SchedulerLike } from 'rxjs';
import { toObservable } from '../../../support/toObservable.js';
import type { Renderer } from '../../../chat/renderers/core/Renderer.js';
import { numberOf } from '../../../rl/rewards/numberOf.js';
import { failAfter } from '../../../rl/sampling/failAfter.js';
import type { Group, Trajectory } from '../../../rl/sampling/rollout.js';
import type { Score, ScoreArgs, Scorer } from '../../scorers/scorer.js';
import type { EvalFailure, EvalRecord, EvalSample } from '../record.js';
import { scorersByName } from './scorersByName.js';

interface Scoring<T> {
  readonly scorers?: readonly Scorer<T>[] | Readonly<Record<string, Scorer<T>>>;
  readonly output?: (trajectory: Trajectory, task: T) => string;
  readonly renderer?: Renderer;
  readonly timeoutMs: number;
  readonly scheduler: SchedulerLike;
}

type Outcome = { readonly sample: EvalSample } | { readonly failure: EvalFailure };

/** Scores all answers to one example. A scorer that fails costs its answer only. */
export function scoreGroup<T>(
  { task, trajectories, failures, durationMs }: Group<T>,
  facts: Pick<EvalRecord, 'id' | 'input' | 'expected'>,
  scoring: Scoring<T>,
): Observable<EvalRecord> {
  const { output = (trajectory: Trajectory) => textOf(trajectory, scoring.renderer) } = scoring;
  const scored = trajectories.map((trajectory): Observable<Outcome> => {
    let said: string | undefined;
    return defer(() => {
      said = output(trajectory, task);
      return scoresOf({ ...facts, output: said, task, trajectory }, scoring);
    }).pipe(
      map((scores): Outcome => ({ sample: sampleOf(trajectory, said!, scores) })),
      catchError((error: unknown) => of<Outcome>({ failure: scorerFailure(trajectory.index, error, said) })),
    );
  });
  return (scored.length === 0 ? of([]) : forkJoin(scored)).pipe(
    map((outcomes: readonly Outcome[]) => ({
      ...facts,
      samples: outcomes.flatMap((each) => ('sample' in each ? [each.sample] : [])),
      failures: [
        ...failures.map(({ index, name, message }) => ({ index, stage: 'rollout' as const, name, message })),
        ...outcomes.flatMap((each) => ('failure' in each ? [each.failure] : [])),
      ].sort((a, b) => a.index - b.index),
      durationMs,
    })),
  );
}

function scoresOf<T>(
  args: ScoreArgs<T>,
  { scorers, timeoutMs, scheduler }: Scoring<T>,
): Observable<ReadonlyMap<string, number>> {
  const named = scorersByName(scorers);
  if (named.length === 0) return of(new Map([['reward', args.trajectory.reward]]));
  const all = named.map(([name, scorer]) =>
    defer(() => toObservable<unknown>(scorer(args))).pipe(map((said) => [name, valueOf(name, said)] as const)),
  );
  const told = forkJoin(all).pipe(
    map((pairs) => new Map(pairs.filter((pair): pair is readonly [string, number] => pair[1] !== null))),
    map((scores) => {
      if (!scores.has(named[0]![0])) throw new Error(`${named[0]![0]} gave no score`);
      return scores;
    }),
  );
  return failAfter(told, 'scoring', timeoutMs, scheduler);
}

function valueOf(name: string, said: unknown): number | null {
  const { score, error } =
    typeof said === 'object' && said !== null && 'score' in said ? (said as Score) : { score: said, error: undefined };
  if (score === null && said !== null) {
    if (error !== undefined && error !== null)
      throw error instanceof Error ? error : new Error(`${name}: ${JSON.stringify(error)}`);
    return null;
  }
  return numberOf(score, `the score of ${name}`, 'a finite number, true or false, or { score }');
}

function sampleOf(trajectory: Trajectory, output: string, scores: ReadonlyMap<string, number>): EvalSample {
  const { index, seed, turns, metrics, durationMs } = trajectory;
  return {
    ...{ index, seed, output, score: [...scores.values()][0]!, scores: Object.fromEntries(scores) },
    ...(metrics === undefined ? {} : { metrics }),
    promptTokens: turns.reduce((sum, { prompt }) => sum + prompt.length, 0),
    sampledTokens: turns.reduce((sum, { sequence }) => sum + sequence.tokens.length, 0),
    stopReason: turns.at(-1)!.sequence.stopReason,
    durationMs,
  };
}

function scorerFailure(index: number, error: unknown, output: string | undefined): EvalFailure {
  const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) };
  return { index, stage: 'scorer', name, message, ...(output === undefined ? {} : { output }) };
}

function textOf({ text: given, logs, turns }: Trajectory, renderer: Renderer | undefined): string {
  const text = given ?? logs?.['text'];
  if (typeof text === 'string') return text;
  if (renderer !== undefined) return renderer.parse(turns.at(-1)!.sequence.tokens).text;
  throw new TypeError(
    'the rollout does not contain its text: give the option renderer or output, or text in the rollout',
  );
}
