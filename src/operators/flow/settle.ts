import { type Either, left, right } from 'fp-ts/lib/Either.js';
import { catchError, map, of, type OperatorFunction } from 'rxjs';

/**
 * Turns the outcome of one item into values: each value to a `right`, an error to a last `left`.
 *
 * ```
 * source    -a-b-#
 * result    -A-B-(E|)              A = right(a), B = right(b), E = left(error)
 * ```
 * Put it inside, around the item that may fail, so that one failure does not end the stream of all:
 * ```ts
 * prompts.pipe(mergeMap((prompt) => sampler.sample({ prompt, numSamples: 1, samplingParams }).pipe(settle())))
 * ```
 * Never errors; completes after the `left` or with the source. Holds nothing.
 */
export function settle<A, E = unknown>(): OperatorFunction<A, Either<E, A>> {
  return (source) =>
    source.pipe(
      map((value): Either<E, A> => right(value)),
      catchError((error: E) => of(left(error))),
    );
}
