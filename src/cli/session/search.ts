import type { SessionSearch } from '../../client/RestClient.js';
import type { PageRequest } from '../../sources/fromPages.js';
import type { SessionSearchCursor } from '../../wire/rest.js';
import { collect, listTitle, ownerOf } from '../collect.js';
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

export default async function sessionSearch(context: Context, options: SessionSearchOptions): Promise<void> {
  const search = queryOf(options);
  const found = await collect(context, {
    unit: 'session',
    limit: options.limit,
    pageSize: 100,
    page: (rest, { limit, cursor }: PageRequest<SessionSearchCursor>) =>
      rest.searchSessions({ ...search, limit, ...(cursor === undefined ? {} : { cursor }) }),
    items: ({ sessions }) => sessions,
    nextCursor: ({ nextCursor }) => nextCursor,
  });
  const { items } = found;
  printTable(
    context,
    {
      title: listTitle(found, 'session'),
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
    owner: ownerOf(owner),
  };
}
