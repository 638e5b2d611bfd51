import { isLeft } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { isRecord } from '../../../support/isRecord.js';
import type { ModelPrice } from '../prices.js';

/** A row of the service's public list. Prices are texts such as `$0.20`, per million tokens. */
const Row = t.intersection([
  t.type({ tinker_id: t.string }),
  t.partial({ prefill: t.unknown, cached_prefill: t.unknown, sample: t.unknown, train: t.unknown }),
]);

/** What a list says, and the rows without all prices: by id, name or number. */
export interface PublicPrices {
  readonly models: Readonly<Record<string, ModelPrice>>;
  readonly unread: readonly string[];
}

/** Reads the service's public list of models. @throws Error for anything else, or if no price can be read */
export function readModelsJson(text: string): PublicPrices {
  const rows = parsed(text);
  if (!Array.isArray(rows)) throw new Error('it is not a list of models');
  const models: (readonly [id: string, price: ModelPrice])[] = [];
  const unread: string[] = [];
  rows.forEach((found: unknown, index) => {
    const row = Row.decode(found);
    const price = isLeft(row) ? undefined : priceIn(row.right);
    if (isLeft(row) || price === undefined) unread.push(nameOf(found) ?? `row ${index + 1}`);
    else models.push([row.right.tinker_id, price]);
  });
  if (models.length === 0) throw new Error('it has no model with prices for prefill, sample and train');
  return { models: Object.fromEntries(models), unread };
}

function nameOf(row: unknown): string | undefined {
  const { tinker_id: id, name } = isRecord(row) ? row : {};
  return [id, name].find((each) => typeof each === 'string');
}

function priceIn(row: t.TypeOf<typeof Row>): ModelPrice | undefined {
  const [prefill, sample, train] = [row.prefill, row.sample, row.train].map(dollars);
  const cached = dollars(row.cached_prefill);
  if (prefill === undefined || sample === undefined || train === undefined) return undefined;
  return { prefill, ...(cached === undefined ? {} : { cached }), sample, train };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('it is not valid JSON');
  }
}

/** `$1,000.20` or 1000.2 as a number; undefined for anything else, such as a dash. A comma is for thousands only. */
function dollars(value: unknown): number | undefined {
  const number = typeof value === 'number' ? value : numberIn(value);
  return number !== undefined && number >= 0 && number < Infinity ? number : undefined;
}

const DOLLARS = /^\s*\$?\s*((?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)\s*$/;

function numberIn(value: unknown): number | undefined {
  const digits = typeof value === 'string' ? DOLLARS.exec(value)?.[1] : undefined;
  return digits === undefined ? undefined : Number(digits.replaceAll(',', ''));
}
