import { readFileSync } from 'node:fs';

/** A row of docs/parity.md. */
export interface Row {
  /** The level-two heading above it. */
  readonly section: string;
  /** `sample()`, `AdamParams`, `TINKER_TAGS`: as list_sdk.py names it. */
  readonly name: string;
  /** Parameters, fields or values named in the first cell. */
  readonly names: readonly string[];
  /** The first cell says that there is an async twin. */
  readonly twin: boolean;
  /** What stands in code marks in the second cell. */
  readonly ours: readonly string[];
  readonly remark: string;
  readonly line: number;
}

const DOCUMENT = new URL('../../../docs/parity.md', import.meta.url);

const codes = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1]!);
export const words = (text: string): string[] => text.match(/[\w$]+/g) ?? [];

export function readRows(): Row[] {
  const rows: Row[] = [];
  let section = '';
  for (const [index, line] of readFileSync(DOCUMENT, 'utf8').split('\n').entries()) {
    if (line.startsWith('## ')) section = line.slice(3).trim();
    if (!line.startsWith('| `')) continue;
    const [first = '', second = '', remark = ''] = line.split('|').slice(1, -1);
    const [code = ''] = codes(first);
    const [, name = '', separator, rest = ''] = /^([\w.]+)\s*([({=])?(.*)$/.exec(code) ?? [];
    rows.push({
      section,
      name: separator === '(' ? `${name}()` : name,
      names: words(rest),
      twin: first.includes('+ async'),
      ours: codes(second),
      remark: remark.trim(),
      line: index + 1,
    });
  }
  return rows;
}
