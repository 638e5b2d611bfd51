import type { Context } from '../context.js';
import { styleFor } from '../terminal/style.js';
import { renderProperties, renderTable, type Table } from './table.js';

/** Prints a list as a table, or its JSON form. */
export function printTable(context: Context, table: Table, json: () => unknown): void {
  if (context.format === 'json') return printJson(context, json());
  const { stdout } = context;
  const width = stdout.isTTY === true ? (stdout.columns ?? 80) : Infinity;
  stdout.write(renderTable(table, { width, style: styleFor(stdout) }));
}

/** Prints one thing's properties, or its JSON form. A property without a value is left out. */
export function printProperties(
  context: Context,
  properties: readonly (readonly [name: string, value: string | undefined])[],
  json: () => unknown,
): void {
  if (context.format === 'json') return printJson(context, json());
  const known = properties.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  context.stdout.write(renderProperties(known, styleFor(context.stdout)));
}

export function printJson({ stdout }: Context, value: unknown): void {
  stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}
