import type { PageRequest } from '../../sources/fromPages.js';
import type { SessionSearchCursor } from '../../wire/rest.js';
import { withoutUndefined } from '../../wire/record.js';
import { collect, listTitle, ownerOf } from '../collect.js';
import type { Context } from '../context.js';
import type { Chosen } from '../declare.js';
import type { SEARCH } from './command.js';
import { when } from '../output/format.js';
import { summaryJson } from '../output/jsonForm.js';
import { printTable } from '../output/print.js';

export default async function sessionSearch(context: Context, options: Chosen<typeof SEARCH>): Promise<void> {
  const { id, name, projectId, metadata, owner, status } = options;
  const search = withoutUndefined({
    ...{ sessionId: id, displayName: name, projectIds: projectId && [...projectId], userMetadata: metadata },
    ...{ statuses: status && [{ type: status }], owner: ownerOf(owner) },
  });
  const found = await collect(context, {
    unit: 'session',
    limit: options.limit,
    pageSize: 100,
    page: (rest, { limit, cursor }: PageRequest<SessionSearchCursor>) =>
      rest.searchSessions(withoutUndefined({ ...search, limit, cursor })),
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
