import { map, type MonoTypeOperatorFunction } from 'rxjs';
import type { Step } from '../step.js';

/** The metrics of a recorded loss under their plain names: `custom/accuracy:mean` as `accuracy`. */
export function plainMetrics(): MonoTypeOperatorFunction<Step> {
  return map((step) => ({
    ...step,
    metrics: Object.fromEntries(
      Object.entries(step.metrics).map(([key, value]) => [/^custom\/(.+):(?:mean|sum)$/.exec(key)?.[1] ?? key, value]),
    ),
  }));
}
