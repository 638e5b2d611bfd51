type Metrics = Readonly<Record<string, number>>;

/** All metrics under their names; the later ones win. Not by assigning: a metric called `__proto__` would be lost. */
export function mergeMetrics(parts: readonly (Metrics | undefined)[]): Metrics {
  return Object.fromEntries(parts.flatMap((part) => Object.entries(part ?? {})));
}
