import {
  asyncScheduler,
  catchError,
  concatMap,
  defer,
  EMPTY,
  map,
  type Observable,
  of,
  type OperatorFunction,
} from 'rxjs';
import { expectedOf, inputText } from '../../../chat/datum/taskText.js';
import { failsForAll, failurePlan } from '../../../operators/flow/FailurePolicy.js';
import { mergeMapWeighted } from '../../../operators/flow/mergeMapWeighted.js';
import { supervised } from '../../../operators/flow/shared/supervised.js';
import { checkAtLeast } from '../../../support/checks.js';
import { distinctIds, exampleId } from './exampleId.js';
import type { EvalRecord, EvalSample, ScoringOptions } from '../record.js';

/** What was measured of a row. */
export type Measured = Omit<EvalSample, 'index' | 'seed' | 'sampledTokens' | 'durationMs'>;

/** A record with one sample for every row, as they finish. A row that cannot be measured is a failure of its record, unless the policy says otherwise. */
export function recordEach<P>(
  options: ScoringOptions,
  measure: (row: P) => Observable<Measured>,
): OperatorFunction<P, EvalRecord> {
  const { id = exampleId, concurrency = 200, skip = () => false, scheduler = asyncScheduler } = options;
  const plan = failurePlan<unknown>(options.onFailure ?? 'skip', 'skip');
  checkAtLeast({ concurrency }, 1);
  const recordOf = (row: P, name: string): Observable<EvalRecord> =>
    defer(() => {
      const startedMs = scheduler.now();
      const expected = expectedOf(row);
      const facts = { id: name, input: inputText(row), ...(expected === undefined ? {} : { expected }) };
      return supervised(row, () => measure(row), { ...plan, then: 'fail' }).pipe(
        map((measured): EvalRecord => {
          const durationMs = scheduler.now() - startedMs;
          const sample = { index: 0, seed: 0, ...measured, sampledTokens: 0, durationMs };
          return { ...facts, samples: [sample], failures: [], durationMs };
        }),
        catchError((error: unknown) => {
          if (plan.then === 'fail' || failsForAll(error)) throw error;
          const { name: kind, message } = error instanceof Error ? error : { name: 'Error', message: String(error) };
          const failure = { index: 0, stage: 'rollout', name: kind, message } as const;
          return of({ ...facts, samples: [], failures: [failure], durationMs: scheduler.now() - startedMs });
        }),
      );
    });
  return (source) =>
    defer(() => {
      const distinct = distinctIds();
      return source.pipe(
        concatMap((row) => {
          const name = distinct(id(row));
          return skip(name) ? EMPTY : of({ row, name });
        }),
        mergeMapWeighted(({ row, name }) => recordOf(row, name), { weight: () => 1, budget: Infinity, concurrency }),
      );
    });
}
