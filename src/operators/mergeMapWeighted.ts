import type { Observable, ObservableInput, ObservedValueOf, OperatorFunction } from 'rxjs';
import { mergeMapAdmitting } from './internal/mergeMapAdmitting.js';

/** Options of `mergeMapWeighted`. */
export interface MergeMapWeightedOptions<T> {
  /** What a value takes from the budget while its inner runs: a finite number ≥ 0. */
  readonly weight: (value: T, index: number) => number;
  /**
   * How much may be in flight. A stream of budgets changes it while running: a larger one admits more at once, a
   * smaller one waits until enough has finished, a negative one admits nothing. Nothing is admitted before the first;
   * a stream that ends without one is an error.
   */
  readonly budget: number | Observable<number>;
  /** How many inners may run at once, whatever they weigh: ≥ 1. Default: no limit. */
  readonly concurrency?: number;
}

/**
 * `mergeMap` that counts what is in flight by weight: a value is admitted while the balance of the budget is ≥ 0.
 *
 * ```
 * source    -a-b-c----------|      weight 1, budget 1
 * a          ------x|
 * b            -------y|
 * c                 --z|           admitted when a has given its weight back
 * result    -------x--(yz)--|
 * ```
 * One value may overshoot the budget, so a value heavier than the whole of it still runs, and then all wait until the
 * balance is back at 0. Values are admitted strictly in order: a light one never overtakes a heavy one.
 *
 * Errors of the source, of an inner, of the budget, and throws of `project` or `weight` end the stream at once and
 * unsubscribe every inner. It completes when the source and all inners have. Unsubscribing stops all of them.
 * Values that wait are queued without bound, but its {@link Gate} is closed while any waits, so sources that know of
 * gates stop sending; it admits nothing while the gate downstream of it is closed. An inner that is fed by the source
 * itself could then never end: where values are Observables (`window`, `groupBy`), and once an inner is heard because of
 * the source, the gate stays open.
 *
 * @see concatMapAhead for results in order
 */
export function mergeMapWeighted<T, O extends ObservableInput<unknown>>(
  project: (value: T, index: number) => O,
  options: MergeMapWeightedOptions<T>,
): OperatorFunction<T, ObservedValueOf<O>> {
  return mergeMapAdmitting(project, { ...options, admits: () => true });
}
