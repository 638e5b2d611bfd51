import { CheckpointStorageUsageResponse } from '../../wire/admin.js';
import { withAdmin } from '../clients.js';
import type { Context } from '../context.js';
import { cellText, columnsOf, writeCsv, type Row } from './csv.js';
import { storageJson } from '../output/jsonForm.js';
import { printTable } from '../output/print.js';

export default async function billingCheckpointStorage(
  context: Context,
  { projectId, csv }: { readonly projectId?: string; readonly csv?: string },
): Promise<void> {
  const answer = await withAdmin(context, 'asking for storage', (admin) =>
    admin.getCurrentCheckpointStorageUsage(projectId === undefined ? {} : { projectId }),
  );
  const encoded = CheckpointStorageUsageResponse.encode(answer) as { readonly data: readonly Row[] };
  const data = encoded.data.map(storageJson);
  const rate = answer.effectiveRateUsdPerGigabyteMonth ?? null;
  const rows = data.map((row): Row => ({ effective_rate_usd_per_gigabyte_month: rate, ...row }));
  if (csv !== undefined) return writeCsv(context, rows, csv);
  const columns = columnsOf(rows).filter((column) => rows.some((row) => cellText(row[column]) !== ''));
  printTable(
    context,
    {
      title: rows.length === 0 ? 'No active checkpoint storage' : 'Current checkpoint storage',
      columns,
      rows: rows.map((row) => columns.map((column) => cellText(row[column]))),
    },
    () => ({ effective_rate_usd_per_gigabyte_month: rate, data }),
  );
}
