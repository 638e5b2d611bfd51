import type { BillingUsageResponse } from '../../wire/admin.js';
import type { Cost, TokenCounts } from './trackCost.js';

/** What was counted here beside what the service billed. */
export interface Reconciliation {
  /** What was counted here. */
  readonly counted: Pick<Cost, keyof TokenCounts | 'usd'>;
  /** What the service billed. */
  readonly billed: TokenCounts & {
    /** As far as the service tells; undefined if it has not said yet. */
    readonly usd: number | undefined;
  };
  /** Billed less counted. */
  readonly difference: TokenCounts & { readonly usd: number | undefined };
  /** Whether all counts of tokens agree. */
  readonly agrees: boolean;
}

const KINDS = ['prompt', 'cached', 'sampled', 'trained'] as const;

/** Holds what was counted in some sessions against the service's own billing of these. */
export function reconcileCost(
  counted: Pick<Cost, keyof TokenCounts | 'usd'>,
  { data }: BillingUsageResponse,
  sessionIds: readonly string[],
): Reconciliation {
  const billed = { prompt: 0, cached: 0, sampled: 0, trained: 0 };
  let usd: number | undefined;
  for (const { sessionId, eventInfo, estimatedCostUsd } of data) {
    if (sessionId === undefined || !sessionIds.includes(sessionId)) continue;
    const { type, tokenCount = 0, cached = false } = eventInfo;
    if (type === 'training') billed.trained += tokenCount;
    if (type === 'sampling_sample') billed.sampled += tokenCount;
    if (type === 'sampling_prefill') {
      billed.prompt += tokenCount;
      if (cached) billed.cached += tokenCount;
    }
    if (estimatedCostUsd !== undefined) usd = (usd ?? 0) + estimatedCostUsd;
  }
  const less = Object.fromEntries(KINDS.map((kind) => [kind, billed[kind] - counted[kind]])) as unknown as TokenCounts;
  return {
    counted,
    billed: { ...billed, usd },
    difference: { ...less, usd: usd === undefined || counted.usd === undefined ? undefined : usd - counted.usd },
    agrees: KINDS.every((kind) => less[kind] === 0),
  };
}
