import { concat, defer, filter, map, type Observable, of, ReplaySubject, scan, share } from 'rxjs';
import type { TinkerEvent } from '../../client/events.js';
import { type ModelPrice, type PriceList, readPrices } from './prices.js';

/** Tokens by what they are billed as. */
export interface TokenCounts {
  /** Of prompts, cached ones included. */
  readonly prompt: number;
  /** Of these, the ones that the service had cached. */
  readonly cached: number;
  /** Sampled tokens. */
  readonly sampled: number;
  /** Tokens of forward and backward passes. */
  readonly trained: number;
}

/** What a run has cost so far. */
export interface Cost extends TokenCounts {
  /** All tokens together. */
  readonly tokens: number;
  /** In US dollars, as far as there are prices; undefined if no model has one. */
  readonly usd: number | undefined;
  /** Models without a price: their tokens are counted, and are not in `usd`. */
  readonly unpriced: readonly string[];
  /** The date of the prices. */
  readonly pricesAsOf: string;
}

/** Options of `trackCost`. */
export interface TrackCostOptions {
  /** The base model that all calls are for; or which model a target (a model id or a sampling session) is. */
  readonly model: string | ((target: string) => string);
  /** Default: the list that this release brings. */
  readonly prices?: PriceList;
  /** What was spent before, by a run that this one continues. Default: nothing. */
  readonly before?: TokenCounts & { readonly usd?: number | undefined };
}

/**
 * What a service's work costs, as its results arrive: a running total that starts at zero.
 *
 * ```ts
 * const cost$ = trackCost(service.events$, { model: 'Qwen/Qwen3-8B', prices: readPrices('prices.json') });
 * ```
 * Counting starts with the first subscriber, and all share one count; later subscribers get the newest total at once. Work whose result
 * nobody waited for is billed and not counted here. Completes with the events.
 */
export function trackCost(
  events$: Observable<TinkerEvent>,
  { model, prices = readPrices(), before }: TrackCostOptions,
): Observable<Cost> {
  const modelOf = typeof model === 'string' ? () => model : model;
  const costs = defer(() =>
    events$.pipe(
      filter((event) => event.type === 'tokens-used'),
      map((event) => ({ ...event, model: modelOf(event.target) })),
      scan((sum, used) => added(sum, used, prices.models[used.model], used.model), atFirst(prices, before)),
    ),
  );
  return defer(() => concat(of(atFirst(prices, before)), costs)).pipe(
    share({ connector: () => new ReplaySubject(1), resetOnRefCountZero: false, resetOnComplete: false }),
  );
}

const NOTHING: TokenCounts = { prompt: 0, cached: 0, sampled: 0, trained: 0 };

function atFirst({ asOf }: PriceList, before: TrackCostOptions['before'] = NOTHING): Cost {
  const { prompt, cached, sampled, trained, usd } = before;
  const tokens = prompt + sampled + trained;
  return { prompt, cached, sampled, trained, tokens, usd, unpriced: [], pricesAsOf: asOf };
}

function added(sum: Cost, used: TokenCounts, price: ModelPrice | undefined, model: string): Cost {
  const unknown = price === undefined && !sum.unpriced.includes(model);
  return {
    prompt: sum.prompt + used.prompt,
    cached: sum.cached + used.cached,
    sampled: sum.sampled + used.sampled,
    trained: sum.trained + used.trained,
    tokens: sum.tokens + used.prompt + used.sampled + used.trained,
    usd: price === undefined ? sum.usd : (sum.usd ?? 0) + priceOf(used, price),
    unpriced: unknown ? [...sum.unpriced, model] : sum.unpriced,
    pricesAsOf: sum.pricesAsOf,
  };
}

/** The price of a number of tokens, in US dollars. */
export function priceOf({ prompt, cached, sampled, trained }: TokenCounts, price: ModelPrice): number {
  const { prefill, cached: cachedPrice = prefill, sample, train } = price;
  return ((prompt - cached) * prefill + cached * cachedPrice + sampled * sample + trained * train) / 1e6;
}
