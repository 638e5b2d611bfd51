import { concatMap, defer, EMPTY, of, type OperatorFunction } from 'rxjs';
import { checkIntegers } from '../../support/checks.js';
import { metricOf, type MetricOptions } from './internal/metricOf.js';

/** Options of `slope`. */
export interface SlopeOptions<T> extends MetricOptions<T> {
  /** Over how many values the line is drawn: an integer ≥ 2. Default 20. */
  readonly window?: number;
}

/**
 * How much a metric changes from one value to the next: the slope of the straight line through the last values (least squares).
 *
 * ```
 * source    -a-b-c-d-|             losses 5, 4, 3, 3 and window 3
 * result    -----x-y-|             −1, −0.5
 * ```
 * ```ts
 * trainUntil((steps) => steps.pipe(slope({ window: 50 }), filter((perStep) => perStep > -1e-4)), trainer, options)
 * ```
 * Emits nothing before there are `window` values. A NaN makes the slopes NaN that it is part of. Errors, also throws of `metric`, and
 * completion pass. Holds `window` numbers.
 */
export function slope<T>({ window = 20, metric }: SlopeOptions<T> = {}): OperatorFunction<T, number> {
  checkIntegers({ window }, 2);
  const read = metricOf(metric);
  const middle = (window - 1) / 2;
  // The sum of (place − middle)² over the window.
  const spread = (window * (window * window - 1)) / 12;
  return (source) =>
    defer(() => {
      const last: number[] = [];
      return source.pipe(
        concatMap((value) => {
          const number = read(value);
          if (number === undefined) return EMPTY;
          if (last.push(number) > window) last.shift();
          if (last.length < window) return EMPTY;
          return of(last.reduce((sum, each, place) => sum + (place - middle) * each, 0) / spread);
        }),
      );
    });
}
