import { readFileSync } from 'node:fs';
import { isLeft } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';

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
}

const PriceListFile = t.type({
  asOf: t.string,
  models: t.record(
    t.string,
    t.intersection([t.type({ prefill: t.number, sample: t.number, train: t.number }), t.partial({ cached: t.number })]),
  ),
});

/**
 * Reads a list of prices: `{ "asOf": "2026-10-07", "models": { "Qwen/Qwen3-8B": { "prefill": …, "cached": …, "sample": …, "train": … } } }`.
 *
 * Without a path, the list that this release brings, which has a date and few models; yours is the one to trust.
 *
 * @throws Error naming the file if it is no such list
 */
export function readPrices(path: string | URL = new URL('../../../assets/prices.json', import.meta.url)): PriceList {
  const wrong = (reason: string) => new Error(`${String(path)} is not a price list: ${reason}`);
  let found: unknown;
  try {
    found = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw error instanceof SyntaxError ? wrong('it is not valid JSON') : error;
  }
  const decoded = PriceListFile.decode(found);
  if (isLeft(decoded)) throw wrong('it needs asOf, and models with prefill, sample and train');
  const { asOf, models } = decoded.right;
  if (Number.isNaN(Date.parse(asOf))) throw wrong('asOf is not a date');
  for (const [name, price] of Object.entries(models)) {
    if (Object.values(price).some((value) => !(typeof value === 'number' && value >= 0 && value < Infinity)))
      throw wrong(`a price of ${name} is not a number ≥ 0`);
  }
  return { asOf, models };
}
