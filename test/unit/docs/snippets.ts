import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../../', import.meta.url));

/** A TypeScript block of a page, as a module. */
export interface Snippet {
  readonly file: string;
  /** Where the block begins in the page, counted from 1. */
  readonly line: number;
  readonly source: string;
  /** For each line of the source, its line in the page. */
  readonly lines: readonly number[];
  /** Whether the page says that it can be run as it stands. */
  readonly runs: boolean;
  /** The output the page shows right after it. */
  readonly output: string | undefined;
}

interface Line {
  readonly text: string;
  readonly number: number;
}

/** The pages whose TypeScript is checked. */
export const PAGES: readonly string[] = [
  'README.md',
  'CONTRIBUTING.md',
  'examples/README.md',
  ...readdirSync(`${root}docs`)
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

/** Reads a page's blocks. What the comments before a block mean is in CONTRIBUTING.md. */
export function snippetsOf(file: string, page = readFileSync(`${root}${file}`, 'utf8')): Snippet[] {
  const lines = page.split('\n').map((text, index): Line => ({ text, number: index + 1 }));
  const found: Snippet[] = [];
  let hidden: readonly Line[] = [];
  let previous: readonly Line[] = [];
  let fresh = false;
  let continues = false;
  let runs = false;
  for (let at = 0; at < lines.length; at++) {
    const { text, number } = lines[at]!;
    const until = (end: string): Line[] => {
      const from = at + 1;
      const to = lines.findIndex((line, index) => index >= from && line.text === end);
      if (to < 0) throw new Error(`${file}:${number}: no '${end}' after this`);
      at = to;
      return lines.slice(from, to);
    };
    if (text === '<!-- snippet') {
      hidden = until('-->');
      fresh = true;
    } else if (text === '<!-- snippet: continues -->') continues = true;
    else if (text === '<!-- snippet: runs -->') runs = true;
    else if (text === '```ts') {
      const block = until('```');
      const alone = block.some((line) => line.text.startsWith('import ')) && !fresh;
      previous = [...(continues ? previous : alone ? [] : hidden), ...block];
      found.push({
        file,
        line: number,
        source: previous.map((line) => line.text).join('\n'),
        lines: previous.map((line) => line.number),
        runs,
        output: outputAfter(lines, at + 1),
      });
      fresh = continues = runs = false;
    } else if (text.startsWith('```')) until('```');
  }
  return found;
}

/** The text block that follows, with at most a sentence in between. */
function outputAfter(lines: readonly Line[], from: number): string | undefined {
  const next = lines.findIndex(({ text }, index) => index >= from && /^(```|#)/.test(text));
  if (lines[next]?.text !== '```text') return undefined;
  const end = lines.findIndex(({ text }, index) => index > next && text === '```');
  return lines
    .slice(next + 1, end)
    .map(({ text }) => text)
    .join('\n');
}
