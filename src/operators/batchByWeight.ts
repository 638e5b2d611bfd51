import { concat, concatMap, defer, EMPTY, of, type OperatorFunction } from 'rxjs';
import { checkAtLeast, checkPositive } from '../support/checks.js';

/** Options of `batchByWeight`. */
export interface BatchByWeightOptions<T> {
  /** What a value weighs, its tokens for example: a finite number ≥ 0. */
  readonly weight: (value: T) => number;
  /** What a batch may weigh: > 0. */
  readonly limit: number;
  /** How many values a batch may hold, whatever they weigh: ≥ 1. Default: no limit. */
  readonly maxSize?: number;
}

/**
 * Groups values into arrays that weigh at most `limit`.
 *
 * ```
 * source    -a-b-c-|               weights 1, 2, 2 and limit 4
 * result    -----x-(y|)            x = [a, b], y = [c]
 * ```
 * A batch is emitted when the next value would not fit, or when it is exactly full. A value heavier than the limit is
 * a separate batch. Errors, also throws of `weight`, pass at once and drop what was collected; completion emits the
 * rest. Holds one batch.
 *
 * @see batch
 */
export function batchByWeight<T>({
  weight,
  limit,
  maxSize = Infinity,
}: BatchByWeightOptions<T>): OperatorFunction<T, readonly T[]> {
  checkPositive({ limit });
  checkAtLeast({ maxSize }, 1);
  return (source) =>
    defer(() => {
      let values: T[] = [];
      let total = 0;
      const flush = (): T[][] => {
        const full = values;
        values = [];
        total = 0;
        return full.length > 0 ? [full] : [];
      };
      return concat(
        source.pipe(
          concatMap((value) => {
            const price = weight(value);
            if (!(price >= 0 && price < Infinity)) throw new RangeError(`weight must be finite and >= 0, got ${price}`);
            const ready = total + price > limit ? flush() : [];
            values.push(value);
            total += price;
            if (total >= limit || values.length >= maxSize) ready.push(...flush());
            return ready.length === 0 ? EMPTY : ready;
          }),
        ),
        defer(() => of(...flush())),
      );
    });
}
