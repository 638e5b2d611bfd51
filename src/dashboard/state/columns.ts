import type { Columns } from './changes.js';

/** Seven digits: more than a pixel can tell, and half the bytes. */
const shorten = (value: number): number | null =>
  Number.isFinite(value) ? (Number.isInteger(value) ? value : Number(value.toPrecision(7))) : null;

/** One row as columns. */
export function columnsOfRow(values: Readonly<Record<string, number>>): Columns {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, [shorten(value)]]));
}
