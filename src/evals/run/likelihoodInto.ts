import { asyncScheduler, type OperatorFunction } from 'rxjs';
import type { EvalFileOptions } from './evaluateInto.js';
import { intoFile } from './internal/intoFile.js';
import { packageVersion } from '../../support/packageVersion.js';
import { likelihood, type LikelihoodOptions } from './likelihood.js';
import type { EvalRecord } from './record.js';

/** {@link likelihood} with a result file, as `evaluateInto` keeps one: what is in it already is not asked again. */
export function likelihoodInto(
  path: string,
  options: LikelihoodOptions & Omit<EvalFileOptions, 'passAt'>,
): OperatorFunction<unknown, EvalRecord> {
  const { tasks, model, notes, renderer, trainOn, accuracy = true, retryFailures = false } = options;
  const { scheduler = asyncScheduler, skip = () => false } = options;
  const protocol = {
    ...{ tasks, model, renderer: renderer.name, samples: 1, samplingParams: {}, seed: 0, passAt: 0 },
    scorers: ['logprob', ...(accuracy ? ['accuracy'] : [])],
    versions: { 'tinker-rx': packageVersion(), node: process.version },
    notes: trainOn === undefined ? notes : { ...notes, trainOn },
  };
  return intoFile(path, protocol, { retryFailures, now: () => scheduler.now() }, (done) =>
    likelihood({ ...options, skip: (id) => done.has(id) || skip(id) }),
  );
}
