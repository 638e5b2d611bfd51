import { concatMap, defer, EMPTY, of, type OperatorFunction } from 'rxjs';
import { checkIntegers } from '../../support/checks.js';
import { metricOf, type MetricOptions } from './internal/metricOf.js';

export type { MetricOptions };

/** Options of `movingMean`. */
export interface MovingMeanOptions<T> extends MetricOptions<T> {
  /** Over how many values the mean is taken: an integer ≥ 1. Default 20. */
  readonly window?: number;
}

/**
 * The mean of a metric over the last values: a number for each value that has the metric.
 *
 * ```
 * source    -a-b-c-|               losses 4, 2, 0 and window 2
 * result    -x-y-z-|               4, 3, 1
 * ```
 * Means are of fewer values until there are `window`. A NaN makes the means NaN that it is part of. Errors, also throws of
 * `metric`, and completion pass. Holds `window` numbers.
 *
 * @see reduceMetrics for all metrics of each value
 */
export function movingMean<T>({ window = 20, metric }: MovingMeanOptions<T> = {}): OperatorFunction<T, number> {
  checkIntegers({ window }, 1);
  const read = metricOf(metric);
  return (source) =>
    defer(() => {
      const last: number[] = [];
      return source.pipe(
        concatMap((value) => {
          const number = read(value);
          if (number === undefined) return EMPTY;
          if (last.push(number) > window) last.shift();
          return of(last.reduce((sum, each) => sum + each, 0) / last.length);
        }),
      );
    });
}
