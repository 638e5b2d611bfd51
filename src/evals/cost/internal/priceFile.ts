import { mkdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { isLeft } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { writeAtomically } from '../../../support/files/writeAtomically.js';
import type { PriceList } from '../prices.js';

const PriceListFile = t.intersection([
  t.type({
    asOf: t.string,
    models: t.record(
      t.string,
      t.intersection([
        t.type({ prefill: t.number, sample: t.number, train: t.number }),
        t.partial({ cached: t.number }),
      ]),
    ),
  }),
  t.partial({ readAtMs: t.number, url: t.string, unread: t.array(t.string) }),
]);

/** A list in a file, and when and from where it was fetched if it was. */
export interface StoredPrices extends PriceList {
  readonly readAtMs?: number | undefined;
  readonly url?: string | undefined;
}

/** Where fetched prices are kept. */
export const priceCache = (): string =>
  join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'tinker-rx', 'prices.json');

/** @throws Error naming the file if it is no list of prices */
export function readPriceFile(path: string | URL): StoredPrices {
  const wrong = (reason: string) => new Error(`${String(path)} is not a price list: ${reason}`);
  let found: unknown;
  try {
    found = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw error instanceof SyntaxError ? wrong('it is not valid JSON') : error;
  }
  const decoded = PriceListFile.decode(found);
  if (isLeft(decoded)) throw wrong('it needs asOf, and models with prefill, sample and train');
  const { asOf, models, readAtMs, url, unread } = decoded.right;
  if (Number.isNaN(Date.parse(asOf))) throw wrong('asOf is not a date');
  for (const [name, price] of Object.entries(models)) {
    if (Object.values(price).some((value) => !(typeof value === 'number' && value >= 0 && value < Infinity)))
      throw wrong(`a price of ${name} is not a number ≥ 0`);
  }
  return { asOf, models, readAtMs, url, ...(unread === undefined ? {} : { unread }) };
}

/** The list in the cache; undefined if there is none, or none that can be read. */
export function readCached(path: string): StoredPrices | undefined {
  try {
    return readPriceFile(path);
  } catch {
    return undefined;
  }
}

/** Keeps a list; where the disk refuses, it is fetched again the next time. */
export function writeCached(path: string, prices: StoredPrices): void {
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeAtomically(path, `${JSON.stringify(prices, undefined, 2)}\n`);
  } catch {
    // The prices are in hand; only the next call is slower.
  }
}
