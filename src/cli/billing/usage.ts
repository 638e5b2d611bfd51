import { BillingUsageResponse } from '../../wire/admin.js';
import { withAdmin } from '../clients.js';
import type { Context } from '../context.js';
import { cellText, columnsOf, writeCsv, type Row } from './csv.js';
import { usageJson } from '../output/jsonForm.js';
import { printTable } from '../output/print.js';

export interface BillingUsageCommandOptions {
  readonly csv?: string;
  readonly sessionsCsv?: string;
}

/** Costs that a kind of usage has, to be told apart, where they are not known, from those it never has. */
const PRICED: Readonly<Record<string, string>> = {
  training: 'effective_rate_usd_per_million_tokens',
  sampling_prefill: 'effective_rate_usd_per_million_tokens',
  sampling_sample: 'effective_rate_usd_per_million_tokens',
  storage: 'effective_rate_usd_per_gigabyte_month',
};

export default async function billingUsage(
  context: Context,
  { csv, sessionsCsv }: BillingUsageCommandOptions,
  startingOn: string,
  endingBefore: string,
): Promise<void> {
  const answer = await withAdmin(context, 'asking for usage', (admin) =>
    admin.getBillingUsage({ startingOn, endingBefore }),
  );
  const json = BillingUsageResponse.encode(answer) as { readonly data: readonly Row[] };
  const data = json.data.map(usageJson);
  const rows = data.map(({ event_info, ...row }): Row => ({ ...row, ...(event_info as Row) }));
  if (sessionsCsv !== undefined) {
    const sessions = Object.entries(answer.sessions).map(([id, { userMetadata }]) => ({
      session_id: id,
      user_metadata: userMetadata,
    }));
    await writeCsv(context, sessions, sessionsCsv);
  }
  if (csv !== undefined) await writeCsv(context, rows, csv);
  if (csv !== undefined || sessionsCsv !== undefined) return;
  const columns = columnsOf(rows).filter((column) => rows.some((row) => cell(row, column) !== ''));
  printTable(
    context,
    {
      title: rows.length === 0 ? 'No billing usage in this window' : `${rows.length} hourly usage row(s)`,
      columns,
      rows: rows.map((row) => columns.map((column) => cell(row, column))),
    },
    () => ({ cost_data_through: null, ...json, data, sessions: sessionsJson(answer) }),
  );
}

const sessionsJson = ({ sessions }: BillingUsageResponse): object =>
  Object.fromEntries(
    Object.entries(sessions).map(([id, { userMetadata = null }]) => [id, { user_metadata: userMetadata }]),
  );

function cell(row: Row, column: string): string {
  const value = row[column];
  if (value !== undefined && value !== null) return cellText(value);
  const rate = PRICED[row['type'] as string];
  return rate !== undefined && (column === rate || column === 'estimated_cost_usd') ? 'null' : '';
}
