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

/** Prints one thing's properties, or its JSON form. */
export function printProperties(
  context: Context,
  properties: readonly (readonly [name: string, value: string])[],
  json: () => unknown,
): void {
  if (context.format === 'json') printJson(context, json());
  else context.stdout.write(renderProperties(properties, styleFor(context.stdout)));
}

export function printJson({ stdout }: Context, value: unknown): void {
  stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}
