import { collect, listTitle } from '../collect.js';
import type { Context } from '../context.js';
import { printTable } from '../output/print.js';

export default async function sessionList(context: Context, { limit }: { readonly limit: number }): Promise<void> {
  const found = await collect(context, {
    unit: 'session',
    limit,
    pageSize: 100,
    page: (rest, asked) => rest.listSessions(asked),
    items: ({ sessions }) => sessions,
  });
  printTable(
    context,
    { title: listTitle(found, 'session'), columns: ['Session ID'], rows: found.items.map((id) => [id]) },
    () => ({ sessions: found.items }),
  );
}
