import { bufferCount, filter, type OperatorFunction } from 'rxjs';
import { checkIntegers } from '../support/checks.js';

/** Options of `batch`. */
export interface BatchOptions {
  /** How many values a batch holds: an integer ≥ 1. */
  readonly size: number;
  /** What becomes of the last, smaller batch: 'emit' (default) or 'drop' it. */
  readonly partial?: 'emit' | 'drop';
}

/**
 * Groups values into arrays of `size`.
 *
 * ```
 * source    -a-b-c-d-e-|           size 2
 * result    ---x---y---(z|)        x = [a, b], y = [c, d], z = [e]
 * ```
 * Errors pass at once and drop what was collected. On completion the smaller rest is emitted, unless dropped.
 * Holds at most `size` values.
 *
 * @see batchByWeight
 */
export function batch<T>({ size, partial = 'emit' }: BatchOptions): OperatorFunction<T, readonly T[]> {
  checkIntegers({ size }, 1);
  return (source) =>
    partial === 'emit'
      ? source.pipe(bufferCount(size))
      : source.pipe(
          bufferCount(size),
          filter((values) => values.length === size),
        );
}
