import { map, type Observable } from 'rxjs';
import type { SamplingClient } from '../../client/SamplingClient.js';
import type { Sampleable } from '../../operators/sampling/sampleFrom.js';
import type { Agent } from '../../rl/sampling/rollout.js';
import { type EvalSummary, summarize, type SummarizeOptions } from '../statistics/summarize.js';
import { evaluate, type EvaluateOptions } from './evaluate.js';

/** Options of `evaluation`: those of `evaluate` except the sampler. */
export interface EvaluationOptions<T, S extends Sampleable = SamplingClient>
  extends Omit<EvaluateOptions<T, S>, 'sampler'>, SummarizeOptions {
  /** The tasks: read again for every evaluation. */
  readonly tasks: Observable<T>;
  /** Stands before the names of its metrics. Default `test`. */
  readonly name?: string;
}

/**
 * An evaluation of a run's own weights, for `evaluateEvery` and for the option `evaluate` of `grpo` and `reinforce`.
 *
 * ```ts
 * evaluateEvery({ steps: 50, evaluate: evaluation(answers({ renderer }), { tasks, scorers: [exact()] }) })
 * ```
 * Seeds are the same every time, so the curve moves for the weights alone. Its metrics are on the dashboard as curves: `test/score` with
 * its interval, `test/pass@k`, each further scorer, and `test/failed`.
 */
export function evaluation<T, S extends Sampleable = SamplingClient>(
  agent: Agent<T, S>,
  { tasks, name = 'test', ...options }: EvaluationOptions<T, S>,
): (sampler: S) => Observable<Readonly<Record<string, number>>> {
  return (sampler) =>
    tasks.pipe(
      evaluate<T, S>(agent, { ...options, sampler }),
      summarize(options),
      map((summary) => metricsOf(summary, name)),
    );
}

function metricsOf({ score, scores, passAtK, failures, samples }: EvalSummary, name: string): Record<string, number> {
  const tried = samples + failures.rollout + failures.scorer;
  const others = Object.entries(scores).slice(1);
  const all: readonly (readonly [string, number])[] = [
    ['score', score.mean],
    ['score_low', score.low],
    ['score_high', score.high],
    ...others.map(([each, { mean }]) => [each, mean] as const),
    ...Object.entries(passAtK).map(([k, { mean }]) => [`pass@${k}`, mean] as const),
    ['failed', tried === 0 ? 0 : (failures.rollout + failures.scorer) / tried],
  ];
  return Object.fromEntries(
    all.filter(([, value]) => Number.isFinite(value)).map(([each, value]) => [`${name}/${each}`, value]),
  );
}
