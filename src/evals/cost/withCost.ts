import {
  asyncScheduler,
  defer,
  finalize,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  type SchedulerLike,
} from 'rxjs';
import type { ServiceClient } from '../../client/ServiceClient.js';
import type { Step } from '../../operators/training/step.js';
import { SpentLog } from './internal/SpentLog.js';
import type { Cost } from './trackCost.js';

/** Options of `withCost`. */
export interface WithCostOptions {
  /** Folder of the run: what is spent is kept there, in `cost.jsonl`. Default: nowhere. */
  readonly folder?: string;
  /** The service, for the session in each line. Default: none is named. */
  readonly service?: Pick<ServiceClient, 'sessionId'>;
  /** The base model, for each line. Default: none is named. */
  readonly model?: string;
  /** For the times of each line. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Adds what a run has cost so far to each step: `cost/tokens`, and `cost/usd` if there is a price, among its metrics.
 *
 * ```ts
 * const cost$ = trackCost(service.events$, { model, before: readSpent('runs/first') });
 * batches.pipe(train(trainer, options), withCost(cost$, { folder: 'runs/first', service }), metricsLog('runs/first'))
 * ```
 * So they are in the log and on the dashboard. With a `folder`, each step also adds a line to `cost.jsonl`, so that a run that is killed and
 * resumed counts on, and a budget holds. The last line is written on completion, error and unsubscribe. Errors and completion pass;
 * those of `cost$` mean nothing. Holds the newest cost.
 *
 * @see readSpent
 */
export function withCost<T extends Step = Step>(
  cost$: Observable<Cost>,
  { folder, service, model = '', scheduler = asyncScheduler }: WithCostOptions = {},
): MonoTypeOperatorFunction<T> {
  return (source) =>
    defer(() => {
      let newest: Cost | undefined;
      let startedAtMs = scheduler.now();
      const log = folder === undefined ? undefined : new SpentLog(folder);
      const watching = cost$.subscribe({ next: (cost) => (newest = cost), error: () => {} });
      const keep = () => {
        if (newest === undefined) return;
        const endedAtMs = scheduler.now();
        log?.add(newest, { sessionId: service?.sessionId ?? '', model, startedAtMs, endedAtMs });
        startedAtMs = endedAtMs;
      };
      return source.pipe(
        map((step) => {
          keep();
          return newest === undefined ? step : { ...step, metrics: { ...step.metrics, ...metricsOf(newest) } };
        }),
        finalize(() => {
          watching.unsubscribe();
          keep();
        }),
      );
    });
}

const metricsOf = ({ tokens, usd }: Cost): Record<string, number> => ({
  'cost/tokens': tokens,
  ...(usd === undefined ? {} : { 'cost/usd': usd }),
});
