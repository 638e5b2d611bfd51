import { EMPTY, type Observable } from 'rxjs';
import type { ServiceClient } from '../../client/index.js';
import type { BudgetSpent, Cost } from '../../evals/index.js';
import { note, type Context } from '../context.js';

/** What a command line says about money. */
export interface SpendingOptions {
  readonly budgetUsd?: number;
  readonly budgetTokens?: number;
  readonly prices?: string;
}

/** What a run costs, as it runs. */
export interface Spending {
  /** The costs of the whole run, of earlier processes too. */
  readonly cost$: Observable<Cost>;
  /** Emits when the budget is spent. */
  readonly spent$: Observable<BudgetSpent>;
  readonly newest: () => Cost | undefined;
  readonly close: () => void;
}

/** Starts counting what a run costs, from what the log in its folder says. */
export async function openSpending(
  context: Context,
  { events$ }: ServiceClient,
  { folder, model }: { readonly folder: string; readonly model: string },
  { budgetUsd: usd, budgetTokens: tokens, prices }: SpendingOptions,
): Promise<Spending> {
  const { budgetSpent, readPrices, readSpent, trackCost } = await import('../../evals/index.js');
  const before = readSpent(folder);
  for (const place of before.damaged) note(context, `Warning: ${place} is cut off and not counted`);
  const list = readPrices(prices);
  if (usd !== undefined && list.models[model] === undefined)
    note(context, `Warning: no price for ${model} in the list of ${list.asOf}: --budget-usd cannot stop it`);
  const cost$ = trackCost(events$, { model, prices: list, before });
  let newest: Cost | undefined;
  const watching = cost$.subscribe((cost) => (newest = cost));
  return {
    cost$,
    spent$: usd === undefined && tokens === undefined ? EMPTY : budgetSpent(cost$, { usd, tokens }),
    newest: () => newest,
    close: () => watching.unsubscribe(),
  };
}

/** `$0.0123`, or `12,345 tokens` where there is no price. */
export function costText({ tokens, usd }: Pick<Cost, 'tokens' | 'usd'>): string {
  const count = `${tokens.toLocaleString('en-US')} tokens`;
  return usd === undefined ? count : `$${usd.toFixed(4)}, ${count}`;
}

/** The flag of a budget twice as large as the one that is spent. */
export function largerBudget({ budgetUsd, budgetTokens }: SpendingOptions, spent: BudgetSpent | undefined): string {
  if (spent === undefined) return '';
  const byTokens = budgetTokens !== undefined && spent.cost.tokens >= budgetTokens;
  return byTokens ? `--budget-tokens ${2 * budgetTokens}` : `--budget-usd ${2 * budgetUsd!}`;
}
