import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EMPTY, type Observable, Subscription } from 'rxjs';
import type { ServiceClient } from '../../client/index.js';
import type * as Evals from '../../evals/index.js';
import type { BudgetSpent, Cost, TokenCounts } from '../../evals/index.js';
import { note, type Context } from '../context.js';

/** What a command line says about money. */
export interface SpendingOptions {
  readonly budgetUsd?: number;
  readonly budgetTokens?: number;
  readonly prices?: string;
}

/** What one process spent on a run: a line of `cost.jsonl` in the folder of the run. */
export interface SpentLine extends TokenCounts {
  readonly sessionId: string;
  readonly model: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly usd?: number;
  readonly pricesAsOf: string;
}

const FILE = 'cost.jsonl';

/** Counts what a run costs, keeps it in the folder of the run, and says when a budget is spent. */
export class Spending {
  readonly #watching = new Subscription();
  readonly #context: Context;
  readonly #folder: string;
  readonly #model: string;
  readonly #startedAtMs: number;
  readonly #service: ServiceClient;
  readonly #before: readonly SpentLine[];
  /** The costs of the whole run, of earlier processes too. */
  readonly cost$: Observable<Cost>;
  /** Emits when the budget is spent. */
  readonly spent$: Observable<BudgetSpent>;
  newest: Cost | undefined;

  private constructor(
    context: Context,
    service: ServiceClient,
    { folder, model }: { readonly folder: string; readonly model: string },
    { budgetUsd: usd, budgetTokens: tokens, prices }: SpendingOptions,
    evals: typeof Evals,
  ) {
    const { events$ } = service;
    this.#service = service;
    this.#context = context;
    this.#folder = folder;
    this.#model = model;
    this.#startedAtMs = context.now();
    this.#before = readSpent(folder);
    const list = evals.readPrices(prices);
    this.cost$ = evals.trackCost(events$, { model, prices: list, before: sumOf(this.#before) });
    this.spent$ = usd === undefined && tokens === undefined ? EMPTY : evals.budgetSpent(this.cost$, { usd, tokens });
    if (usd !== undefined && list.models[model] === undefined)
      note(context, `Warning: no price for ${model} in the list of ${list.asOf}: --budget-usd cannot stop it`);
    this.#watching.add(this.cost$.subscribe((cost) => (this.newest = cost)));
  }

  /** Starts counting. */
  static async open(
    context: Context,
    service: ServiceClient,
    run: { readonly folder: string; readonly model: string },
    options: SpendingOptions,
  ): Promise<Spending> {
    return new Spending(context, service, run, options, await import('../../evals/index.js'));
  }

  /** Stops counting and keeps what this process spent, where it spent anything. */
  close(): void {
    this.#watching.unsubscribe();
    if (this.newest === undefined) return;
    const earlier = sumOf(this.#before);
    const { prompt, cached, sampled, trained, usd, pricesAsOf } = this.newest;
    const line: SpentLine = {
      ...{ sessionId: this.#service.sessionId ?? '', model: this.#model, startedAtMs: this.#startedAtMs },
      endedAtMs: this.#context.now(),
      ...{ prompt: prompt - earlier.prompt, cached: cached - earlier.cached },
      ...{ sampled: sampled - earlier.sampled, trained: trained - earlier.trained },
      ...(usd === undefined ? {} : { usd: usd - (earlier.usd ?? 0) }),
      pricesAsOf,
    };
    if (line.prompt + line.sampled + line.trained === 0) return;
    mkdirSync(this.#folder, { recursive: true });
    appendFileSync(join(this.#folder, FILE), `${JSON.stringify(line)}\n`);
  }
}

/** What all processes of a run have spent; none where the folder does not tell. */
export function readSpent(folder: string): readonly SpentLine[] {
  const path = join(folder, FILE);
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as SpentLine);
}

/** All lines together. */
export function sumOf(lines: readonly SpentLine[]): TokenCounts & { readonly usd: number | undefined } {
  const sum = (name: keyof TokenCounts) => lines.reduce((total, line) => total + line[name], 0);
  const priced = lines.flatMap(({ usd }) => usd ?? []);
  return {
    ...{ prompt: sum('prompt'), cached: sum('cached'), sampled: sum('sampled'), trained: sum('trained') },
    usd: priced.length === 0 ? undefined : priced.reduce((total, usd) => total + usd, 0),
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
