import type { PackedRows } from './changes.js';
import { packColumn, unpackColumn } from './packColumn.js';
import type { Series } from './Series.js';

/** Rows `from` to `to` of a series. */
export function packRows(series: Series, from = 0, to = series.length): PackedRows {
  const columns = series.names.flatMap((name) => {
    const packed = packColumn(series.column(name)!.subarray(from, to));
    return packed === undefined ? [] : [[name, packed] as const];
  });
  return {
    size: to - from,
    index: packColumn(series.index.subarray(from, to)) ?? { as: 'all' },
    columns: Object.fromEntries(columns),
  };
}

/** Appends to a series what {@link packRows} took from one. */
export function appendRows(series: Series, { size, index, columns }: PackedRows): void {
  const unpacked = Object.entries(columns).map(([name, packed]) => [name, unpackColumn(packed, size)] as const);
  series.appendAll(unpackColumn(index, size), Object.fromEntries(unpacked));
}
