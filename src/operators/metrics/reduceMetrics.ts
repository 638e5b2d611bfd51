import { defer, map, type OperatorFunction, scan } from 'rxjs';
import { checkIntegers } from '../../support/checks.js';

type Metrics = Readonly<Record<string, number>>;

/** What a metric has been so far, or over the last values. */
export interface MetricSummary {
  /** The newest value. */
  readonly last: number;
  /** The mean over the window. */
  readonly mean: number;
  /** The smallest value in the window. */
  readonly min: number;
  /** The largest value in the window. */
  readonly max: number;
  /** The sum over the window. */
  readonly sum: number;
  /** How many values it is made of. */
  readonly count: number;
}

/** A value with what its metrics have come to. */
export interface Reduced<T> {
  /** The source's value, unchanged. */
  readonly value: T;
  /** Over all values so far. */
  readonly running: Readonly<Record<string, MetricSummary>>;
  /** Over the last `window` values. */
  readonly windowed: Readonly<Record<string, MetricSummary>>;
}

/** Options of `reduceMetrics`. */
export interface ReduceMetricsOptions<T> {
  /** How many values the windowed figures are taken over: an integer ≥ 1. Default 20. */
  readonly window?: number;
  /** The metrics of a value. Default: its `metrics`, and its `loss` where it has one. */
  readonly metrics?: (value: T) => Metrics;
}

/**
 * Adds running and windowed figures to each value: a loss curve that can be read.
 *
 * ```
 * source    -a-b-c-|               loss 4, 2, 0 and window 2
 * result    -A-B-C-|               running means 4, 3, 2; windowed means 4, 3, 1
 * ```
 * A metric that is missing from a value, or NaN, is passed over for that value. Errors, also throws of `metrics`, and
 * completion pass. Holds `window` sets of metrics.
 */
export function reduceMetrics<T>({ window = 20, metrics = metricsOf }: ReduceMetricsOptions<T> = {}): OperatorFunction<
  T,
  Reduced<T>
> {
  checkIntegers({ window }, 1);
  return (source) =>
    defer(() =>
      source.pipe(
        map((value) => ({ value, found: metrics(value) })),
        scan(
          ({ running, recent }, { value, found }) => {
            const latest = [...recent, found].slice(-window);
            return { value, running: add(running, found), recent: latest, windowed: latest.reduce(add, {}) };
          },
          { running: {}, recent: [] } as State<T>,
        ),
        map(({ value, running, windowed }) => ({ value: value!, running, windowed: windowed! })),
      ),
    );
}

interface State<T> {
  readonly value?: T;
  readonly running: Readonly<Record<string, MetricSummary>>;
  readonly recent: readonly Metrics[];
  readonly windowed?: Readonly<Record<string, MetricSummary>>;
}

function add(
  summaries: Readonly<Record<string, MetricSummary>>,
  found: Metrics,
): Readonly<Record<string, MetricSummary>> {
  // A map: a metric called __proto__ would be lost as the key of an object.
  const added = new Map(Object.entries(summaries));
  for (const [key, value] of Object.entries(found)) {
    if (Number.isNaN(value)) continue;
    const { sum = 0, count = 0, min = Infinity, max = -Infinity } = added.get(key) ?? {};
    added.set(key, {
      last: value,
      mean: (sum + value) / (count + 1),
      min: Math.min(min, value),
      max: Math.max(max, value),
      sum: sum + value,
      count: count + 1,
    });
  }
  return Object.fromEntries(added);
}

function metricsOf(value: unknown): Metrics {
  const { metrics, loss } = value as { readonly metrics?: Metrics; readonly loss?: number };
  return typeof loss === 'number' ? { ...metrics, loss } : (metrics ?? {});
}
