import { defer, finalize, map, type MonoTypeOperatorFunction, type Observable } from 'rxjs';
import type { Step } from '../../operators/step.js';
import type { Cost } from './trackCost.js';

/**
 * Adds what a run has cost so far to each step: `cost/tokens`, and `cost/usd` if there is a price, among its metrics.
 *
 * ```ts
 * batches.pipe(train(trainer, options), withCost(cost$), metricsLog('runs/first'), dashboard.showSteps())
 * ```
 * So they are in the log and on the dashboard. Errors and completion pass; those of `cost$` mean nothing. Holds the newest cost.
 */
export function withCost<T extends Step = Step>(cost$: Observable<Cost>): MonoTypeOperatorFunction<T> {
  return (source) =>
    defer(() => {
      let newest: Cost | undefined;
      const watching = cost$.subscribe({ next: (cost) => (newest = cost), error: () => {} });
      return source.pipe(
        map((step) => (newest === undefined ? step : { ...step, metrics: { ...step.metrics, ...metricsOf(newest) } })),
        finalize(() => watching.unsubscribe()),
      );
    });
}

const metricsOf = ({ tokens, usd }: Cost): Record<string, number> => ({
  'cost/tokens': tokens,
  ...(usd === undefined ? {} : { 'cost/usd': usd }),
});
