import { filter, map, type Observable, take } from 'rxjs';
import { checkPositive } from '../../support/checks.js';
import type { Cost } from './trackCost.js';

/** How much a run may cost. What is not given has no limit. */
export interface Budget {
  /** US dollars, as far as there are prices. */
  readonly usd?: number | undefined;
  /** Tokens of prompts, sampled and trained together. */
  readonly tokens?: number | undefined;
}

/** Why a run ended before its data did. */
export interface BudgetSpent {
  /** In words: `the budget of 1,000 tokens is spent: 1,234 tokens`. */
  readonly reason: string;
  /** What the run had cost by then. */
  readonly cost: Cost;
}

/**
 * Emits once, with the reason, when a run has cost as much as it may; completes then, or with the costs.
 *
 * ```ts
 * batches.pipe(trainUntil(budgetSpent(cost$, { usd: 5 }), trainer, options))
 * ```
 * @see withinBudget
 */
export function budgetSpent(
  cost$: Observable<Cost>,
  { usd = Infinity, tokens = Infinity }: Budget,
): Observable<BudgetSpent> {
  checkPositive({ usd, tokens });
  return cost$.pipe(
    filter((cost) => cost.tokens >= tokens || (cost.usd ?? 0) >= usd),
    take(1),
    map((cost) => ({ reason: reasonFor(cost, usd, tokens), cost })),
  );
}

function reasonFor(cost: Cost, usd: number, tokens: number): string {
  const count = (value: number) => `${value.toLocaleString('en-US')} tokens`;
  return cost.tokens >= tokens
    ? `the budget of ${count(tokens)} is spent: ${count(cost.tokens)}`
    : `the budget of $${usd} is spent: $${cost.usd!.toFixed(4)}`;
}
