import { asyncScheduler, type OperatorFunction } from 'rxjs';
import type { SamplingClient } from '../../client/SamplingClient.js';
import type { Sampleable } from '../../operators/sampling/sampleFrom.js';
import type { Agent } from '../../rl/sampling/rollout.js';
import { evaluate, type EvaluateOptions } from './evaluate.js';
import { intoFile } from './internal/intoFile.js';
import { packageVersion } from '../../support/packageVersion.js';
import { scorersByName } from './internal/scorersByName.js';
import type { EvalProtocol, EvalRecord } from './record.js';

/** What is written into an evaluation's file beside its records. */
export interface EvalFileOptions {
  /** What is asked, to be pinned: a file's name, or any other. */
  readonly tasks?: string;
  /** Which weights, to be pinned: a model or a checkpoint. */
  readonly model?: string;
  /** A score from this on is a pass. Default 0.5. */
  readonly passAt?: number;
  /** Anything else that is worth pinning. */
  readonly notes?: Readonly<Record<string, unknown>>;
  /** Whether examples with a failed sample are asked again. Default: no, they were asked once. */
  readonly retryFailures?: boolean;
}

/** Options of `evaluateInto`: those of `evaluate` and what the file records. */
export type EvaluateIntoOptions<T, S extends Sampleable = SamplingClient> = EvaluateOptions<T, S> & EvalFileOptions;

/**
 * {@link evaluate} with a result file: what is in the file already is not asked again, also after `kill -9`.
 *
 * ```ts
 * tasks.pipe(evaluateInto('facts.eval.jsonl', answers({ renderer }), { sampler, scorers: [exact()], renderer }))
 * ```
 * The first line pins how the evaluation is made; then each example has one line, written when it finishes. Emits the
 * records that the file holds, then the new ones. A file that was made in another way ends the stream with an error that names the
 * difference; another release of this package does not, and is noted in the file. A line that a crash left half written is taken off.
 * Errors, completion and unsubscribing as with `evaluate`. Holds the ids in the file.
 */
export function evaluateInto<T, S extends Sampleable = SamplingClient>(
  path: string,
  agent: Agent<T, S>,
  options: EvaluateIntoOptions<T, S>,
): OperatorFunction<T, EvalRecord> {
  const protocol = protocolOf(options);
  const { retryFailures = false, scheduler = asyncScheduler, skip = () => false } = options;
  return intoFile(path, protocol, { retryFailures, now: () => scheduler.now() }, (done) =>
    evaluate(agent, { ...options, skip: (id) => done.has(id) || skip(id) }),
  );
}

/** How an evaluation with these options is made. */
function protocolOf<T, S extends Sampleable>(options: EvaluateIntoOptions<T, S>): EvalProtocol {
  const { tasks, model, notes, passAt = 0.5, samples = 1, seed = 0, samplingParams = {}, renderer } = options;
  const names = scorersByName(options.scorers).map(([name]) => name);
  return {
    ...{ tasks, model, renderer: renderer?.name, samples, samplingParams: { ...samplingParams }, seed },
    ...{ scorers: names.length === 0 ? ['reward'] : names, passAt },
    versions: { 'tinker-rx': packageVersion(), node: process.version },
    notes,
  };
}
