import { firstValueFrom, type ObservableInput, take, tap, toArray } from 'rxjs';
import type { RestClient } from '../client/RestClient.js';
import type { PageRequest } from '../sources/fromPages.js';
import { withRest } from './clients.js';
import type { Context } from './context.js';
import { count } from './output/format.js';
import type { Status } from './terminal/statusLine.js';

export interface CollectOptions<P, T, C> {
  /** What is being listed, in the singular. */
  readonly unit: string;
  /** Most items to fetch; 0 for all. */
  readonly limit: number;
  /** Items to ask for at once. */
  readonly pageSize: number;
  readonly page: (rest: RestClient, asked: PageRequest<C>) => ObservableInput<P>;
  readonly items: (page: P) => readonly T[];
  /** The total number, if the service reports it. */
  readonly total?: (page: P) => number | undefined;
  /** The cursor of the next page, for lists that page by cursor. */
  readonly nextCursor?: (page: P) => C | null | undefined;
}

export interface Collected<T> {
  readonly items: readonly T[];
  readonly total: number | undefined;
}

/** The first items of a list that comes in pages; shows how far it is. */
export async function collect<P, T, C = string>(
  context: Context,
  { unit, limit, pageSize, page, items, total, nextCursor }: CollectOptions<P, T, C>,
): Promise<Collected<T>> {
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
      fromPages<P, T, C>((asked) => page(rest, asked), {
        limit: Math.min(pageSize, wanted),
        items: (answer: P) => {
          all = total?.(answer) ?? all;
          return items(answer);
        },
        ...(total === undefined ? {} : { total }),
        ...(nextCursor === undefined ? {} : { nextCursor }),
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

/** Whose things to search: `own`, `accessible`, or the URN of a user. */
export const ownerOf = (
  owner: string,
): { readonly type: 'own' | 'accessible' } | { readonly type: 'user'; readonly ownerUrns: string[] } =>
  owner === 'own' || owner === 'accessible' ? { type: owner } : { type: 'user', ownerUrns: [owner] };
