import { concatMap, defer, map, type MonoTypeOperatorFunction, type Observable, takeUntil, tap } from 'rxjs';
import { currentGate } from '../../operators/pressure/gate.js';
import { whenOpen } from '../../operators/pressure/shared/whenOpen.js';
import { type Budget, type BudgetSpent, budgetSpent } from './budgetSpent.js';
import type { Cost } from './trackCost.js';

/** Options of `withinBudget`. */
export interface WithinBudgetOptions {
  /** What the run costs: see `trackCost`. */
  readonly cost$: Observable<Cost>;
  /** How much the run may cost. */
  readonly budget: Budget;
  /** Told why the data ended, where it did. */
  readonly onSpent?: (spent: BudgetSpent) => void;
}

/**
 * Ends the data when the budget is spent: what is in flight is finished, nothing more is begun.
 *
 * ```
 * source    (abcd|)                a budget that a and b spend; one at a time
 * result    a--b--|
 * ```
 * ```ts
 * tasks.pipe(withinBudget({ cost$, budget: { usd: 5 } }), evaluate(agent, { sampler, scorers: [exact()] }))
 * ```
 * Stands right before the operator that spends: `evaluate`, `rollouts`, `reinforce`, `sampleFrom`, `train`. A value is handed on when
 * that operator has room for it and not before, so the budget is overshot by what is in flight and by nothing else. With a checkpoint
 * `atEnd` the run is saved where it ends. Errors and completion pass. Holds what its source sends without being asked.
 */
export function withinBudget<T>({ cost$, budget, onSpent }: WithinBudgetOptions): MonoTypeOperatorFunction<T> {
  return (source) =>
    defer(() => {
      const gate = currentGate();
      return source.pipe(
        concatMap((value) => whenOpen(gate).pipe(map(() => value))),
        takeUntil(budgetSpent(cost$, budget).pipe(tap((spent) => onSpent?.(spent)))),
      );
    });
}
