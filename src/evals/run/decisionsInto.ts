import { asyncScheduler, type OperatorFunction } from 'rxjs';
import { packageVersion } from '../../support/packageVersion.js';
import { decisions, type DecisionsOptions } from './decisions.js';
import type { EvalFileOptions } from './evaluateInto.js';
import { intoFile } from './internal/intoFile.js';
import type { EvalRecord } from './record.js';

/** Options of `decisionsInto`: those of `decisions` and what the file records. */
export type DecisionsIntoOptions<P> = DecisionsOptions<P> & Omit<EvalFileOptions, 'passAt'>;

/** {@link decisions} with a result file, as `evaluateInto` keeps one: what is in it already is not asked again. */
export function decisionsInto<P = unknown>(
  path: string,
  options: DecisionsIntoOptions<P>,
): OperatorFunction<P, EvalRecord> {
  const { tasks, model, notes, renderer, labels, system, retryFailures = false } = options;
  const { scheduler = asyncScheduler, skip = () => false } = options;
  const { name } = renderer as { readonly name?: string };
  const protocol = {
    ...{ tasks, model, renderer: name, samples: 1, samplingParams: {}, seed: 0, passAt: 0.5 },
    scorers: ['accuracy', 'logprob', 'brier'],
    versions: { 'tinker-rx': packageVersion(), node: process.version },
    notes: { ...notes, labels, ...(system === undefined ? {} : { system }) },
  };
  return intoFile(path, protocol, { retryFailures, now: () => scheduler.now() }, (done) =>
    decisions({ ...options, skip: (id) => done.has(id) || skip(id) }),
  );
}
