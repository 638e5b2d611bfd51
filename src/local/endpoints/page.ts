import type { RequestContext } from '../http/requestContext.js';

const LARGEST_PAGE = 1000;

export interface Page<A> {
  readonly items: readonly A[];
  readonly cursor: { readonly offset: number; readonly limit: number; readonly total_count: number };
}

/** The part of a list that `limit` (default 20) and `offset` ask for. */
export function page<A>(context: RequestContext, all: readonly A[]): Page<A> {
  const offset = context.integer('offset', 0);
  const limit = Math.min(context.integer('limit', 20), LARGEST_PAGE);
  return { items: all.slice(offset, offset + limit), cursor: { offset, limit, total_count: all.length } };
}
