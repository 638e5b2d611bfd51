import { firstValueFrom, take, toArray } from 'rxjs';
import type { SessionSearch } from '../../client/RestClient.js';
import type { SessionSearchCursor, SessionSearchResponse, SessionSummary } from '../../wire/rest.js';
import { withRest } from '../clients.js';
import { listTitle } from '../collect.js';
import type { Context } from '../context.js';
import { when } from '../output/format.js';
import { summaryJson } from '../output/jsonForm.js';
import { printTable } from '../output/print.js';

export interface SessionSearchOptions {
  readonly id?: string;
  readonly name?: string;
  readonly projectId?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly owner: string;
  readonly status?: 'active' | 'failed' | 'cancelled' | 'client_finished';
  readonly limit: number;
}

const PAGE = 100;

export default async function sessionSearch(context: Context, options: SessionSearchOptions): Promise<void> {
  const { fromPages } = await import('../../sources/fromPages.js');
  const { limit } = options;
  const search = queryOf(options);
  const items = await withRest(context, 'searching', (rest) =>
    firstValueFrom(
      fromPages<SessionSearchResponse, SessionSummary, SessionSearchCursor>(
        ({ cursor, limit }) => rest.searchSessions({ ...search, limit, ...(cursor === undefined ? {} : { cursor }) }),
        {
          limit: limit === 0 ? PAGE : Math.min(PAGE, limit),
          items: ({ sessions }) => sessions,
          nextCursor: ({ nextCursor }) => nextCursor,
        },
      ).pipe(take(limit === 0 ? Infinity : limit), toArray()),
    ),
  );
  printTable(
    context,
    {
      title: listTitle({ items, total: undefined }, 'session'),
      columns: ['Session ID', 'Name', 'Created', 'Status', 'Checkpoints', 'Owner', 'Project'],
      rows: items.map((session) => [
        session.sessionId,
        session.displayName ?? '',
        when(session.createdAt, context.now()),
        session.status?.type ?? 'N/A',
        String(session.checkpointsCount),
        session.owner,
        session.projectId,
      ]),
    },
    () => ({ sessions: items.map(summaryJson) }),
  );
}

function queryOf({ id, name, projectId, metadata, owner, status }: SessionSearchOptions): NonNullable<SessionSearch> {
  return {
    ...(id === undefined ? {} : { sessionId: id }),
    ...(name === undefined ? {} : { displayName: name }),
    ...(projectId === undefined ? {} : { projectIds: [...projectId] }),
    ...(metadata === undefined ? {} : { userMetadata: metadata }),
    ...(status === undefined ? {} : { statuses: [{ type: status }] }),
    owner: owner === 'own' || owner === 'accessible' ? { type: owner } : { type: 'user', ownerUrns: [owner] },
  };
}
