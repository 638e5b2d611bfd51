import { firstValueFrom, type ObservableInput, take, tap, toArray } from 'rxjs';
import type { RestClient } from '../client/RestClient.js';
import { withRest } from './clients.js';
import type { Context } from './context.js';
import { count } from './output/format.js';
import type { Status } from './terminal/statusLine.js';

export interface CollectOptions<P, T> {
  /** What is being listed, in the singular. */
  readonly unit: string;
  /** Most items to fetch; 0 for all. */
  readonly limit: number;
  /** Items to ask for at once. */
  readonly pageSize: number;
  readonly page: (rest: RestClient, asked: { readonly offset: number; readonly limit: number }) => ObservableInput<P>;
  readonly items: (page: P) => readonly T[];
  /** How many there are in all, where the service tells. */
  readonly total?: (page: P) => number | undefined;
}

export interface Collected<T> {
  readonly items: readonly T[];
  readonly total: number | undefined;
}

/** The first items of a list that comes in pages; shows how far it is. */
export async function collect<P, T>(context: Context, options: CollectOptions<P, T>): Promise<Collected<T>> {
  const { unit, limit, pageSize, page, items, total } = options;
  const { fromPages } = await import('../sources/fromPages.js');
  const wanted = limit === 0 ? Infinity : limit;
  let all: number | undefined;
  let fetched = 0;
  const label = (): string | Status => {
    if (fetched === 0) return `fetching ${unit}s`;
    const expected = all === undefined ? undefined : Math.min(all, wanted);
    return {
      label: `fetching ${unit}s`,
      ...(expected === undefined ? {} : { fraction: fetched / expected }),
      facts: [{ text: `${fetched}${expected === undefined ? '' : `/${expected}`}` }],
    };
  };
  const found = await withRest(context, label, (rest) =>
    firstValueFrom(
      fromPages((asked) => page(rest, asked), {
        limit: Math.min(pageSize, wanted),
        items: (answer: P) => {
          all = total?.(answer) ?? all;
          return items(answer);
        },
        ...(total === undefined ? {} : { total }),
      }).pipe(
        tap(() => fetched++),
        take(wanted),
        toArray(),
      ),
    ),
  );
  return { items: found, total: all };
}

/** `3 runs (7 more not shown, use --limit to see more)`. */
export function listTitle({ items, total }: Collected<unknown>, unit: string, suffix = ''): string {
  if (items.length === 0) return `No ${unit}s found${suffix}`;
  const more = (total ?? items.length) - items.length;
  return `${count(items.length, unit)}${suffix}${more > 0 ? ` (${more} more not shown, use --limit to see more)` : ''}`;
}
