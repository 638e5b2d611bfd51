import { defer, filter, type MonoTypeOperatorFunction } from 'rxjs';
import { checkAtLeast, checkIntegers } from '../../support/checks.js';
import { metricOf, type MetricOptions } from './internal/metricOf.js';

/** Options of `plateau`. */
export interface PlateauOptions<T> extends MetricOptions<T> {
  /** How many values in a row may be no better than the best before: an integer ≥ 1. */
  readonly patience: number;
  /** How much better than the best a value must be to count: ≥ 0. Default 0. */
  readonly minDelta?: number;
  /** Whether lower (default) or higher numbers are better. */
  readonly better?: 'lower' | 'higher';
}

/**
 * Emits the value at which a metric has not improved for `patience` values, and again after every further `patience` of them.
 *
 * ```
 * source    -a-b-c-d-e-|           losses 5, 4, 4, 6, 3 and patience 2
 * result    -------d---|
 * ```
 * ```ts
 * trainUntil((steps) => steps.pipe(plateau({ metric: 'test/nll', patience: 3 })), trainer, options)   // early stopping
 * ```
 * A NaN is no improvement. Errors, also throws of `metric`, and completion pass. Holds one number.
 */
export function plateau<T>(options: PlateauOptions<T>): MonoTypeOperatorFunction<T> {
  const find = plateauFinder(options);
  return (source) => defer(() => source.pipe(filter(find())));
}

/** @internal For each run a function that says whether a value, the next in order, is at a plateau. */
export function plateauFinder<T>({
  patience,
  metric,
  minDelta = 0,
  better = 'lower',
}: PlateauOptions<T>): () => (value: T) => boolean {
  checkIntegers({ patience }, 1);
  checkAtLeast({ minDelta }, 0);
  const read = metricOf(metric);
  const sign = better === 'lower' ? 1 : -1;
  return () => {
    let best = Infinity;
    let worse = 0;
    return (value) => {
      const number = read(value);
      if (number === undefined) return false;
      const isBetter = best === Infinity ? !Number.isNaN(number) : sign * number < best - minDelta;
      worse = isBetter ? 0 : worse + 1;
      if (isBetter) best = sign * number;
      return worse > 0 && worse % patience === 0;
    };
  };
}
