/** Which number of a value is looked at. */
export interface MetricOptions<T> {
  /**
   * The number, by name or by a function: `loss`, a name in the value's `metrics`, or one in the newest of its `evaluations`. A value without it, or
   * for which the function returns undefined, is passed over. Default `loss`.
   */
  readonly metric?: string | ((value: T) => number | undefined);
}

type Numbers = Readonly<Record<string, number>>;
interface Measured {
  readonly metrics?: Numbers;
  readonly evaluations?: readonly { readonly metrics: Numbers }[];
}

/** Reads the number of a value. */
export function metricOf<T>(metric: MetricOptions<T>['metric'] = 'loss'): (value: T) => number | undefined {
  if (typeof metric === 'function') return metric;
  return (value) => {
    const { metrics, evaluations } = value as Measured;
    const own = (value as Readonly<Record<string, unknown>>)[metric];
    return typeof own === 'number' ? own : (metrics?.[metric] ?? evaluations?.at(-1)?.metrics[metric]);
  };
}
