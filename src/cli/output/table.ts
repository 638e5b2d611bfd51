import type { Style } from '../terminal/style.js';
import { oneLine, padEnd, textWidth, wrap } from '../../support/terminal/textWidth.js';

/** A list of things, one a row. */
export interface Table {
  readonly title?: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Whether the last column is for copying: where it does not fit it stands below its row, whole. */
  readonly lastBelow?: boolean;
}

export interface TableOptions {
  /** How many cells the terminal is wide; Infinity where there is none. */
  readonly width: number;
  readonly style: Style;
}

const GAP = '  ';
const NARROWEST = 8;

/**
 * A table that fits: columns but the first are narrowed and their cells broken into lines; where that is not enough,
 * each row becomes a block of `column  value` lines, whose values are whole and can be copied.
 */
export function renderTable(
  { title, columns, rows, lastBelow = false }: Table,
  { width, style }: TableOptions,
): string {
  const clean = rows.map((row) => row.map(oneLine));
  const heading = title === undefined ? [] : [style.bold(oneLine(title))];
  if (clean.length === 0) return lines(heading);
  const natural = columns.map((column, place) =>
    Math.max(textWidth(column), ...clean.map((row) => textWidth(row[place] ?? ''))),
  );
  const below = lastBelow && totalWidth(natural) > width;
  const widths = fit(below ? natural.slice(0, -1) : natural, width);
  if (widths === undefined) {
    const blocks = clean.map((row) => columns.map((column, place) => [column, row[place] ?? ''] as const));
    return lines([
      ...heading,
      blocks
        .map((block) => renderProperties(block, style))
        .join('\n')
        .trimEnd(),
    ]);
  }
  const rest = (row: readonly string[]) => (below ? [style.dim(`${GAP}${row.at(-1)}`)] : []);
  return lines([
    ...heading,
    ...cells(columns, widths).map(style.bold),
    ...clean.flatMap((row) => [...cells(row, widths, style.cyan), ...rest(row)]),
  ]);
}

/** Names and values below each other, as for one thing. */
export function renderProperties(
  properties: readonly (readonly [name: string, value: string])[],
  style: Style,
): string {
  const width = Math.max(...properties.map(([name]) => textWidth(name)));
  return lines(properties.map(([name, value]) => `${style.bold(padEnd(oneLine(name), width))}${GAP}${oneLine(value)}`));
}

const totalWidth = (widths: readonly number[]): number =>
  widths.reduce((sum, cells) => sum + cells, 0) + GAP.length * (widths.length - 1);

/** Narrows the widest column but the first until all fit; undefined if they cannot. */
function fit(natural: readonly number[], width: number): readonly number[] | undefined {
  const widths = [...natural];
  while (totalWidth(widths) > width) {
    const widest = widths.reduce((best, cells, place) => (place > 0 && cells > (widths[best] ?? 0) ? place : best), 1);
    if (!(widths[widest]! > NARROWEST)) return undefined;
    widths[widest]!--;
  }
  return widths;
}

function cells(
  row: readonly string[],
  widths: readonly number[],
  first: (text: string) => string = (text) => text,
): string[] {
  const broken = widths.map((width, place) => wrap(row[place] ?? '', width));
  const height = Math.max(...broken.map((part) => part.length));
  return Array.from({ length: height }, (_, line) =>
    broken
      .map((part, place) => {
        const text = padEnd(part[line] ?? '', widths[place]!);
        return place === 0 ? first(text) : text;
      })
      .join(GAP)
      .trimEnd(),
  );
}

const lines = (all: readonly string[]): string => all.map((line) => `${line}\n`).join('');
