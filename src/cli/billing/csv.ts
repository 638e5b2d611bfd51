import { writeFile } from 'node:fs/promises';
import { note, type Context } from '../context.js';
import { count } from '../output/format.js';

export type Row = Readonly<Record<string, unknown>>;

/** The columns of rows that need not all have the same: in the order in which they first come. */
export const columnsOf = (rows: readonly Row[]): string[] => [...new Set(rows.flatMap((row) => Object.keys(row)))];

/** Rows as CSV (RFC 4180). */
export function toCsv(rows: readonly Row[]): string {
  const columns = columnsOf(rows);
  const line = (cells: readonly unknown[]) => `${cells.map(field).join(',')}\r\n`;
  return [columns, ...rows.map((row) => columns.map((column) => row[column]))].map(line).join('');
}

function field(value: unknown): string {
  const text = cellText(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A JSON value as the text of a cell: strings as they are, nothing for null. */
export const cellText = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value);

/** Writes rows to a file, or to standard output for `-`. */
export async function writeCsv(context: Context, rows: readonly Row[], path: string): Promise<void> {
  if (path === '-') {
    context.stdout.write(toCsv(rows));
    return;
  }
  await writeFile(path, toCsv(rows));
  note(context, `Wrote ${count(rows.length, 'row')} to ${path}`);
}
