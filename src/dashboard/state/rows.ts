import type { Rows } from './changes.js';
import type { Row, Series } from './Series.js';

const ROWS_A_BLOCK = 2000;

/** Seven digits: more than a pixel can tell, and half the bytes. */
const shorten = (value: number | undefined): number | null => {
  if (value === undefined || !Number.isFinite(value)) return null;
  return Number.isInteger(value) ? value : Number(value.toPrecision(7));
};

/** Rows by column; null if a row has no such value. */
export function toColumns(rows: readonly Row[]): Rows {
  const names = new Set(rows.flatMap(({ values }) => Object.keys(values)));
  return {
    index: rows.map(({ index }) => index),
    columns: Object.fromEntries([...names].map((name) => [name, rows.map(({ values }) => shorten(values[name]))])),
  };
}

/** All rows of a series, `atOnce` at a time. Leaves out columns without a number. */
export function* rowsOf(series: Series, atOnce = ROWS_A_BLOCK): Generator<Rows> {
  for (let from = 0; from < series.length; from += atOnce) {
    const part = (column: Float64Array) =>
      Array.from(column.subarray(from, from + atOnce), (value) => (Number.isNaN(value) ? null : value));
    const columns = series.names.map((name) => [name, part(series.column(name)!)] as const);
    yield {
      index: Array.from(series.index.subarray(from, from + atOnce)),
      columns: Object.fromEntries(columns.filter(([, column]) => column.some((value) => value !== null))),
    };
  }
}
