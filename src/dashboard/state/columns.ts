import type { Columns } from './changes.js';
import type { Row, Series } from './Series.js';

/** Seven digits: more than a pixel can tell, and half the bytes. */
const shorten = (value: number): number | null =>
  Number.isFinite(value) ? (Number.isInteger(value) ? value : Number(value.toPrecision(7))) : null;

/** Rows `from` to `to` of a series as plain JSON. Columns without a number in these rows are left out. */
export function columnsOf(series: Series, from: number, to: number): { index: number[]; columns: Columns } {
  const columns: Record<string, (number | null)[]> = {};
  for (const name of series.names) {
    const column = Array.from(series.column(name)!.subarray(from, to), shorten);
    if (column.some((value) => value !== null)) columns[name] = column;
  }
  return { index: Array.from(series.index.subarray(from, to)), columns };
}

/** The inverse of {@link columnsOf}. */
export function* rowsOf({
  index,
  columns,
}: {
  readonly index: readonly number[];
  readonly columns: Columns;
}): Iterable<Row> {
  const entries = Object.entries(columns);
  for (let row = 0; row < index.length; row++) {
    const values: Record<string, number> = {};
    for (const [name, column] of entries) values[name] = column[row] ?? NaN;
    yield { index: index[row]!, values };
  }
}

/** One row as columns. */
export function columnsOfRow(values: Readonly<Record<string, number>>): Columns {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, [shorten(value)]]));
}
