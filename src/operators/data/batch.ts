import { bufferCount, filter, type OperatorFunction } from 'rxjs';
import { checkIntegers } from '../../support/checks.js';
import { type Filling, inBatches, type WithinOptions } from './internal/inBatches.js';

/** Options of `batch`. */
export interface BatchOptions extends WithinOptions {
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
 * For a source that trickles, `withinMs` emits what there is when the first value of a batch has waited that long:
 * ```
 * source    -a-b-c-----d----|      size 3, withinMs 4
 * result    -----x--------y-|      x = [a, b, c], y = [d], four frames after it came
 * ```
 * The time of a batch that is due while what is downstream is full is over when that has room again.
 *
 * @see batchByWeight
 */
export function batch<T>({ size, partial = 'emit', ...within }: BatchOptions): OperatorFunction<T, readonly T[]> {
  checkIntegers({ size }, 1);
  if (within.withinMs !== undefined) {
    if (partial === 'drop') throw new RangeError("withinMs emits smaller batches, so partial cannot be 'drop'");
    return inBatches(() => bySize(size), within);
  }
  return (source) =>
    partial === 'emit'
      ? source.pipe(bufferCount(size))
      : source.pipe(
          bufferCount(size),
          filter((values) => values.length === size),
        );
}

function bySize<T>(size: number): Filling<T> {
  const values: T[] = [];
  const flush = () => (values.length > 0 ? [values.splice(0)] : []);
  return {
    add: (value) => (values.push(value) === size ? flush() : []),
    flush,
    get isEmpty() {
      return values.length === 0;
    },
  };
}
