import type { OperatorFunction } from 'rxjs';
import { checkAtLeast, checkPositive } from '../../support/checks.js';
import { inBatches, type WithinOptions } from './internal/inBatches.js';

/** Options of `batchByWeight`. */
export interface BatchByWeightOptions<T> extends WithinOptions {
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
 * rest. With `withinMs`, a batch is also emitted when its first value has waited that long, as in {@link batch}.
 * Holds one batch.
 *
 * @see batch
 */
export function batchByWeight<T>({
  weight,
  limit,
  maxSize = Infinity,
  ...within
}: BatchByWeightOptions<T>): OperatorFunction<T, readonly T[]> {
  checkPositive({ limit });
  checkAtLeast({ maxSize }, 1);
  return inBatches(() => {
    const values: T[] = [];
    let total = 0;
    const flush = (): T[][] => {
      total = 0;
      return values.length > 0 ? [values.splice(0)] : [];
    };
    return {
      add: (value) => {
        const price = weight(value);
        if (!(price >= 0 && price < Infinity)) throw new RangeError(`weight must be finite and >= 0, got ${price}`);
        const ready = total + price > limit ? flush() : [];
        values.push(value);
        total += price;
        if (total >= limit || values.length >= maxSize) ready.push(...flush());
        return ready;
      },
      flush,
      get isEmpty() {
        return values.length === 0;
      },
    };
  }, within);
}
