import { messageOf } from '../../support/messageOf.js';
import { readModelsJson } from './internal/modelsJson.js';
import { priceCache, readCached, readPriceFile, writeCached } from './internal/priceFile.js';

/** What a model costs, in US dollars per million tokens. */
export interface ModelPrice {
  /** Tokens of prompts. */
  readonly prefill: number;
  /** Tokens of prompts that the service had cached. Default: as `prefill`. */
  readonly cached?: number | undefined;
  /** Sampled tokens. */
  readonly sample: number;
  /** Tokens of forward and backward passes. */
  readonly train: number;
}

/** Prices of a day. */
export interface PriceList {
  /** When they were read: a date. */
  readonly asOf: string;
  /** By the name of the base model. */
  readonly models: Readonly<Record<string, ModelPrice>>;
  /** Models of the service's list that have no full price there, by id, name or row. Absent if all have. */
  readonly unread?: readonly string[];
  /** Why the service's list could not be read. Absent if it was, or was not asked for. */
  readonly problem?: string;
}

/** Options of `readPrices` from the service's public list. */
export interface ReadPricesOptions {
  /** Address of the list. Default: the `models.json` of the service's documentation. */
  readonly url?: string;
  /** File that the list is kept in. Default `tinker-rx/prices.json` in `XDG_CACHE_HOME`, else in `~/.cache`. */
  readonly cache?: string;
  /** How old a kept list may be before it is read again, in milliseconds. 0: it is always read again. Default one day. */
  readonly maxAgeMs?: number;
  /** How it is requested. Default: the `fetch` of Node.js, for at most ten seconds. */
  readonly fetch?: (url: string) => Promise<{ readonly ok: boolean; readonly status: number; text(): Promise<string> }>;
  /** The time, in milliseconds. Default `Date.now`. */
  readonly now?: () => number;
}

const MODELS_JSON = 'https://tinker-docs.thinkingmachines.ai/tinker/models.json';
const DAY_MS = 86_400_000;
const ownList = () => readPriceFile(new URL('../../../assets/prices.json', import.meta.url));

/**
 * Reads a list of prices: `{ "asOf": "2026-10-07", "models": { "Qwen/Qwen3-8B": { "prefill": …, "cached": …, "sample": …, "train": … } } }`.
 *
 * Without a path, the list that `tinker-rx prices update` or `readPrices({})` kept, or the one that this release brings, which has few models:
 * whichever is newer. With options, the service's public list is read, and kept for a day; a promise that never rejects: where the list cannot
 * be read, it is what `readPrices()` gives, with the reason as `problem`.
 *
 * @throws Error naming the file if it is no such list
 */
export function readPrices(path?: string | URL): PriceList;
export function readPrices(options: ReadPricesOptions): Promise<PriceList>;
export function readPrices(from?: string | URL | ReadPricesOptions): PriceList | Promise<PriceList> {
  if (from === undefined) return newestKept(priceCache());
  return typeof from === 'string' || from instanceof URL ? listOf(readPriceFile(from)) : fromService(from);
}

const listOf = ({ asOf, models, unread }: PriceList): PriceList => ({
  ...{ asOf, models },
  ...(unread === undefined ? {} : { unread }),
});

function newestKept(cache: string): PriceList {
  const [own, kept] = [ownList(), readCached(cache)];
  return listOf(kept !== undefined && Date.parse(kept.asOf) >= Date.parse(own.asOf) ? kept : own);
}

async function fromService(options: ReadPricesOptions): Promise<PriceList> {
  const {
    url = MODELS_JSON,
    cache = priceCache(),
    maxAgeMs = DAY_MS,
    now = Date.now,
    fetch: get = fetchBriefly,
  } = options;
  const kept = readCached(cache);
  const age = now() - (kept?.readAtMs ?? -Infinity);
  if (kept?.url === url && age >= 0 && age < maxAgeMs) return listOf(kept);
  try {
    const reply = await get(url);
    if (!reply.ok) throw new Error(`it answered with status ${reply.status}`);
    const { models, unread } = readModelsJson(await reply.text());
    const readAtMs = now();
    const asOf = new Date(readAtMs).toISOString().slice(0, 10);
    const list = { asOf, models, ...(unread.length === 0 ? {} : { unread }) };
    writeCached(cache, { ...list, readAtMs, url });
    return list;
  } catch (error) {
    return { ...newestKept(cache), problem: `${url}: ${messageOf(error)}` };
  }
}

const fetchBriefly = (url: string) => fetch(url, { signal: AbortSignal.timeout(10_000) });
