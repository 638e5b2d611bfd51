import type { MonoTypeOperatorFunction } from 'rxjs';
import type { ServiceClient } from '../../client/index.js';
import type { Cost } from '../../evals/index.js';
import { note, type Context } from '../context.js';
import { costText, type SpendingOptions } from '../run/Spending.js';

/** What an evaluation cost, and why it ended early where a budget ended it. */
export interface SpendingTold {
  readonly cost?: Cost;
  readonly stopped?: string;
}

export interface EvalSpending {
  /** Ends the tasks when the budget is spent. */
  within<T>(): MonoTypeOperatorFunction<T>;
  /** The cost so far, in a few words. */
  text(): string | undefined;
  told(): SpendingTold;
}

/** Counts what an evaluation costs. A judge of another model is counted at the price of the model that is evaluated. */
export async function evalSpending(
  context: Context,
  { events$ }: ServiceClient,
  { budgetUsd: usd, budgetTokens: tokens, prices: file }: SpendingOptions,
  model: string,
): Promise<EvalSpending> {
  const { readPrices, trackCost, withinBudget } = await import('../../evals/index.js');
  const prices = readPrices(file);
  if (usd !== undefined && prices.models[model] === undefined)
    note(context, `Warning: no price for ${model} in the list of ${prices.asOf}: --budget-usd cannot stop it`);
  const cost$ = trackCost(events$, { model, prices });
  let cost: Cost | undefined;
  let stopped: string | undefined;
  cost$.subscribe((newest) => (cost = newest));
  return {
    within: () => withinBudget({ cost$, budget: { usd, tokens }, onSpent: ({ reason }) => (stopped = reason) }),
    text: () => (cost === undefined || cost.tokens === 0 ? undefined : costText(cost)),
    told: () => ({ ...(cost === undefined ? {} : { cost }), ...(stopped === undefined ? {} : { stopped }) }),
  };
}
