import { map, type Observable } from 'rxjs';
import { fromServerSentEvents, type ServerSentEventsOptions } from '../../sources/fromServerSentEvents.js';
import type { DashboardMessage } from '../state/changes.js';

/** Options of `fromDashboard`. */
export type FromDashboardOptions = Pick<
  ServerSentEventsOptions,
  'onState' | 'fetch' | 'scheduler' | 'retryMs' | 'maxRetryMs'
>;

/**
 * What a dashboard server sends, given the address of its page, over as many connections as it takes. Runs in Node and
 * in browsers: build a custom page on it.
 *
 * ```ts
 * fromDashboard(dashboard.url).pipe(foldDashboard()).subscribe(({ runs }) => draw(runs));
 * ```
 * After a lost connection it continues after the last message it received. Errors with a `ServerSentEventsError` when the
 * server refuses it, as one that was restarted with another token does. Unsubscribing closes the connection.
 */
export function fromDashboard(
  url: string | URL,
  { retryMs = 500, maxRetryMs = 5000, ...options }: FromDashboardOptions = {},
): Observable<DashboardMessage> {
  const page = new URL(url);
  const token = page.searchParams.get('token') ?? '';
  return fromServerSentEvents(new URL('events', page), {
    ...options,
    retryMs,
    maxRetryMs,
    headers: { authorization: `Bearer ${token}` },
  }).pipe(map(({ data }) => JSON.parse(data) as DashboardMessage));
}
