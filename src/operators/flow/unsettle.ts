import { type Either, isRight } from 'fp-ts/lib/Either.js';
import { concatMap, EMPTY, of, type OperatorFunction } from 'rxjs';
import { type AfterFailure, failsForAll, failurePlan } from './FailurePolicy.js';

/**
 * Takes a settled stream apart: passes each `right` on as its value, and does about each `left` what a policy says.
 *
 * ```
 * source    -A-E-B-|               A = right(a), E = left({ item, error }), B = right(b)
 * result    -a---b-|               'skip'
 * ```
 * ```ts
 * prompts.pipe(
 *   sampleFrom(sampler, { numSamples: 1, settle: true }),
 *   dashboard.showSamples(),                              // sees the failures, too
 *   unsettle({ deadLetters: toDeadLetters('dead.jsonl') }),
 * )
 * ```
 * 'fail' ends the stream with the `error` of the first `left`, as does an error that every item would meet (a refused key).
 * Errors and completion pass. Holds nothing.
 *
 * @see settle
 */
export function unsettle<P, A>(
  policy: 'fail' | 'skip' | AfterFailure<P>,
): OperatorFunction<Either<{ readonly item: P; readonly error: unknown }, A>, A> {
  const { then, deadLetters } = failurePlan<P>(policy);
  return concatMap((settled) => {
    if (isRight(settled)) return of(settled.right);
    const { item, error } = settled.left;
    deadLetters?.({ item, error, attempts: 1 });
    if (then === 'fail' || failsForAll(error)) throw error;
    return EMPTY;
  });
}
