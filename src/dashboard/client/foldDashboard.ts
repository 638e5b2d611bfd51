import { asyncScheduler, defer, map, type OperatorFunction, type SchedulerLike } from 'rxjs';
import type { DashboardMessage } from '../state/changes.js';
import { DashboardState } from '../state/DashboardState.js';

/** Options of `foldDashboard`. */
export interface FoldDashboardOptions {
  /** For the difference between the server's clock and ours. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Folds messages into the state of a dashboard, and emits it after each.
 *
 * Always the same object, changed in place: 100,000 rows are not copied for one more. Look at its `version` to see
 * whether something is new. Errors and completion pass. Holds what {@link DashboardState} holds.
 */
export function foldDashboard({ scheduler = asyncScheduler }: FoldDashboardOptions = {}): OperatorFunction<
  DashboardMessage,
  DashboardState
> {
  return (source) =>
    defer(() => {
      const state = new DashboardState();
      return source.pipe(map((message) => state.receive(message, scheduler.now())));
    });
}
