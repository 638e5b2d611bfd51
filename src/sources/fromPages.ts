import { concatMap, defer, EMPTY, expand, from, map, type Observable, type ObservableInput } from 'rxjs';
import { checkIntegers } from '../support/checks.js';
import { findGate } from '../operators/pressure/shared/backpressureEvents.js';
import { whenOpen } from '../operators/pressure/shared/whenOpen.js';
import { keepGate } from '../operators/pressure/keepGate.js';

/** What to ask a paged list for: the offset and limit, or the cursor that the last page gave. */
export interface PageRequest<C> {
  /** How many items to skip. */
  readonly offset: number;
  /** How many items to return at most. */
  readonly limit: number;
  /** Undefined for the first page. */
  readonly cursor: C | undefined;
}

/** Options of `fromPages`. */
export interface PagesOptions<P, T, C> {
  /** The items of a page. */
  readonly items: (page: P) => readonly T[];
  /** How many items to ask for: an integer ≥ 1. Default 100. */
  readonly limit?: number;
  /** How many items there are in all, if the page says so. Default: a page shorter than `limit` is the last. */
  readonly total?: (page: P) => number | undefined;
  /** The cursor of the next page, undefined or null after the last; for lists that page by cursor. */
  readonly nextCursor?: (page: P) => C | null | undefined;
}

/**
 * The items of a paged list, page after page.
 *
 * ```ts
 * fromPages(({ offset, limit }) => rest.listTrainingRuns({ offset, limit }), {
 *   items: (page) => page.trainingRuns,
 *   total: (page) => page.cursor.totalCount,
 * }).pipe(take(250))
 * ```
 * The next page is asked for only when the items of the last are out, and not while the bounded operator downstream is
 * full. Errors of a request, and throws of the functions given, end the stream. Completes after the last page, or after
 * an empty one. Unsubscribing stops the request in flight. Holds one page.
 */
export function fromPages<P, T, C = string>(
  request: (page: PageRequest<C>) => ObservableInput<P>,
  { items, limit = 100, total, nextCursor }: PagesOptions<P, T, C>,
): Observable<T> {
  checkIntegers({ limit }, 1);
  interface Fetched {
    readonly found: readonly T[];
    readonly next: PageRequest<C> | undefined;
  }
  const read = (asked: PageRequest<C>): Observable<Fetched> =>
    defer(() => request(asked)).pipe(
      map((page): Fetched => {
        const found = items(page);
        const offset = asked.offset + found.length;
        if (nextCursor !== undefined) {
          const cursor = nextCursor(page) ?? undefined;
          return { found, next: cursor === undefined ? undefined : { offset, limit, cursor } };
        }
        const all = total?.(page);
        const last = found.length === 0 || (all === undefined ? found.length < limit : offset >= all);
        return { found, next: last ? undefined : { offset, limit, cursor: undefined } };
      }),
    );
  return defer(() => {
    const gate = findGate('fromPages');
    return read({ offset: 0, limit, cursor: undefined }).pipe(
      keepGate(),
      expand(({ next }) =>
        next === undefined
          ? EMPTY
          : whenOpen(gate).pipe(
              concatMap(() => read(next)),
              keepGate(),
            ),
      ),
      concatMap(({ found }) => from(found)),
    );
  });
}
