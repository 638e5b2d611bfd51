import { concatMap, defer, EMPTY, of, type OperatorFunction } from 'rxjs';
import { checkIntegers, checkPositive } from '../../support/checks.js';
import { metricOf, type MetricOptions } from './internal/metricOf.js';

/** Options of `anomaly`. Without `above`, `below` and `sigmas`, only numbers that are not finite are found. */
export interface AnomalyOptions<T> extends MetricOptions<T> {
  /** A number above this is found: a KL divergence beyond its limit. Default: none is. */
  readonly above?: number;
  /** A number below this is found. Default: none is. */
  readonly below?: number;
  /** A number is found that is this many standard deviations away from the mean of the values before it: > 0. Default: none is. */
  readonly sigmas?: number;
  /** How many values before it a number is compared with, for `sigmas`: an integer ≥ 2. Default 20. */
  readonly window?: number;
}

/** A value whose metric is out of the ordinary. */
export interface Anomaly<T> {
  /** The source's value. */
  readonly value: T;
  /** Its metric. */
  readonly metric: number;
  /** Why it was found; `spike` and `drop` are by `sigmas`. */
  readonly reason: 'not-finite' | 'above' | 'below' | 'spike' | 'drop';
  /** What the metric was compared with: the limit, or the mean of the values before. NaN for `not-finite`. */
  readonly expected: number;
}

/**
 * Finds the values whose metric is out of the ordinary: loss spikes, a reward that collapses, a KL beyond its limit.
 *
 * ```
 * source    -a-b-c-d-|             losses 1, 2, 90, 1 and above 9
 * result    -----x---|             x = { value: c, metric: 90, reason: 'above', expected: 9 }
 * ```
 * ```ts
 * trainUntil((steps) => steps.pipe(anomaly({ metric: 'kl', above: 0.2 })), trainer, options)
 * ```
 * By `sigmas`, a value is compared once there are `window` values before it; those that were found are not among them. Errors, also throws of
 * `metric`, and completion pass. Holds `window` numbers.
 */
export function anomaly<T>({
  metric,
  above = Infinity,
  below = -Infinity,
  sigmas = Infinity,
  window = 20,
}: AnomalyOptions<T> = {}): OperatorFunction<T, Anomaly<T>> {
  checkPositive({ sigmas });
  checkIntegers({ window }, 2);
  if (Number.isNaN(above) || Number.isNaN(below)) throw new RangeError('above and below must be numbers, got NaN');
  const read = metricOf(metric);
  return (source) =>
    defer(() => {
      const before: number[] = [];
      const find = (number: number): readonly [Anomaly<T>['reason'], number] | undefined => {
        if (!Number.isFinite(number)) return ['not-finite', NaN];
        if (number > above) return ['above', above];
        if (number < below) return ['below', below];
        if (before.length < window) return undefined;
        const mean = before.reduce((sum, each) => sum + each, 0) / window;
        const deviation = Math.sqrt(before.reduce((sum, each) => sum + (each - mean) ** 2, 0) / window);
        if (Math.abs(number - mean) <= sigmas * deviation || sigmas === Infinity) return undefined;
        return [number > mean ? 'spike' : 'drop', mean];
      };
      return source.pipe(
        concatMap((value) => {
          const number = read(value);
          if (number === undefined) return EMPTY;
          const found = find(number);
          if (found !== undefined) return of({ value, metric: number, reason: found[0], expected: found[1] });
          if (before.push(number) > window) before.shift();
          return EMPTY;
        }),
      );
    });
}
