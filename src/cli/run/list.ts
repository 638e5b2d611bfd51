import { CliError } from '../CliError.js';
import { collect, listTitle } from '../collect.js';
import type { Context } from '../context.js';
import { runJson } from '../output/jsonForm.js';
import { printTable } from '../output/print.js';
import { DEFAULT_RUN_COLUMNS, RUN_COLUMNS } from './runColumns.js';

export default async function runList(
  context: Context,
  options: { readonly limit: number; readonly columns?: string },
): Promise<void> {
  const columns = options.columns?.split(',').map((name) => name.trim()) ?? DEFAULT_RUN_COLUMNS;
  const unknown = columns.filter((name) => !Object.hasOwn(RUN_COLUMNS, name));
  if (unknown.length > 0)
    throw new CliError(`Unknown column(s): ${unknown.join(', ')}`, {
      details: `Available: ${Object.keys(RUN_COLUMNS).join(', ')}`,
      exitCode: 2,
    });
  const runs = await collect(context, {
    unit: 'training run',
    limit: options.limit,
    pageSize: 100,
    page: (rest, asked) => rest.listTrainingRuns(asked),
    items: ({ trainingRuns }) => trainingRuns,
    total: ({ cursor }) => cursor.totalCount,
  });
  const nowMs = context.now();
  const shown = columns.map((name) => RUN_COLUMNS[name]!);
  printTable(
    context,
    {
      title: listTitle(runs, 'training run'),
      columns: shown.map(({ header }) => header),
      rows: runs.items.map((run) => shown.map(({ cell }) => cell(run, nowMs))),
    },
    () => ({ runs: runs.items.map(runJson) }),
  );
}
