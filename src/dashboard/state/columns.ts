import type { Columns } from './changes.js';
import type { Series } from './Series.js';

/** Seven digits: more than a pixel can tell, and half the bytes. */
const shorten = (value: number): number | null =>
  Number.isFinite(value) ? (Number.isInteger(value) ? value : Number(value.toPrecision(7))) : null;

/** Rows `from` to `to` of a series as plain JSON. Columns without a number in these rows are left out. */
export function columnsOf(series: Series, from: number, to: number): { index: number[]; columns: Columns } {
  const columns: Record<string, (number | null)[]> = {};
  for (const name of series.names) {
    const source = series.column(name)!;
    const column = new Array<number | null>(to - from);
    let some = false;
    for (let row = from; row < to; row++) {
      const value = source[row]!;
      const known = Number.isFinite(value);
      column[row - from] = known ? value : null;
      some ||= known;
    }
    if (some) columns[name] = column;
  }
  return { index: Array.from(series.index.subarray(from, to)), columns };
}

/** One row as columns. */
export function columnsOfRow(values: Readonly<Record<string, number>>): Columns {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, [shorten(value)]]));
}
