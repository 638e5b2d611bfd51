import type { ModelPrice } from '../../evals/index.js';
import { CliError } from '../CliError.js';
import { note, type Context } from '../context.js';
import { failureOf, withHttp } from '../http.js';
import { count } from '../output/format.js';
import { printTable } from '../output/print.js';

export interface PricesUpdateOptions {
  readonly url?: string;
}

const KINDS = ['prefill', 'cached', 'sample', 'train'] as const;

/** Reads the service's list now, whatever its age, and says which prices are new or changed. */
export default async function pricesUpdate(context: Context, { url }: PricesUpdateOptions): Promise<void> {
  const { readPrices } = await import('../../evals/index.js');
  const before = readPrices();
  const found = await withHttp((http) =>
    readPrices({
      maxAgeMs: 0,
      now: context.now,
      ...(url === undefined ? {} : { url }),
      fetch: async (address) => {
        try {
          return await http.fetch(address, { signal: AbortSignal.timeout(30_000) });
        } catch (error) {
          throw new Error(failureOf(error), { cause: error });
        }
      },
    }),
  );
  const { asOf, models, problem, unread = [] } = found;
  // A program continues with the list of before; a command that was to update it fails.
  if (problem !== undefined)
    throw new CliError('The price list cannot be read', {
      details: `${problem}\nThe prices of ${asOf} stay in use.`,
    });
  if (unread.length > 0) note(context, `Warning: no full price of ${unread.join(', ')}`);
  const news = Object.entries(models).filter(([model, price]) => !isSame(before.models[model], price));
  const gone = Object.keys(before.models).filter((model) => models[model] === undefined);
  printTable(
    context,
    {
      title: `${count(Object.keys(models).length, 'model')} as of ${asOf}, ${news.length} new or changed; US dollars per million tokens`,
      columns: ['Model', 'Prefill', 'Cached', 'Sample', 'Train', 'Before'],
      rows: news.map(([model, price]) => [
        model,
        ...KINDS.map((kind) => String(price[kind] ?? price.prefill)),
        before.models[model] === undefined
          ? 'new'
          : KINDS.map((kind) => before.models[model]![kind] ?? '–').join(' / '),
      ]),
    },
    () => ({ as_of: asOf, models, changed: news.map(([model]) => model), gone }),
  );
  if (gone.length > 0) note(context, `No longer listed: ${gone.join(', ')}`);
}

const isSame = (before: ModelPrice | undefined, after: ModelPrice): boolean =>
  before !== undefined && KINDS.every((kind) => before[kind] === after[kind]);
