import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../../', import.meta.url));

/** A TypeScript block of a page, as a module. */
export interface Snippet {
  readonly file: string;
  /** Where the block begins in the page, counted from 1. */
  readonly line: number;
  readonly source: string;
  /** The block itself. */
  readonly code: string;
  /** The block, after those that it continues: what the reader has seen of the program. */
  readonly shown: string;
  /** What comes before it and is not in the page as the reader sees it, or comes from blocks before it. */
  readonly hidden: string;
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
  let shown: readonly Line[] = [];
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
    } else if (text === '<!-- snippet: continues -->') continues = true;
    else if (text === '<!-- snippet: runs -->') runs = true;
    else if (text === '```ts') {
      const block = until('```');
      const before = continues ? previous : runs ? [] : hidden;
      shown = [...(continues ? shown : []), ...block];
      previous = [...withoutNamesOf(block, before), ...block];
      found.push({
        file,
        line: number,
        source: previous.map((line) => line.text).join('\n'),
        code: block.map((line) => line.text).join('\n'),
        shown: shown.map((line) => line.text).join('\n'),
        hidden: before.map((line) => line.text).join('\n'),
        lines: previous.map((line) => line.number),
        runs,
        output: outputAfter(lines, at + 1),
      });
      continues = runs = false;
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

const IMPORT = /^import (type )?\{([^}]*)\} from '([^']+)';/;

/** The names that a text imports, each with the module it comes from. */
export function importsOf(text: string): { readonly name: string; readonly module: string }[] {
  return [...text.matchAll(new RegExp(IMPORT, 'gm'))].flatMap(([, , names, module]) =>
    names!
      .split(',')
      .map((name) => name.trim().replace(/^type /, ''))
      .filter((name) => name !== '')
      .map((name) => ({ name: name.split(' as ').at(-1)!, module: module! })),
  );
}

/** Lines without what the block imports or declares itself. */
function withoutNamesOf(block: readonly Line[], before: readonly Line[]): readonly Line[] {
  const text = block.map((line) => line.text).join('\n');
  const own = new Set([
    ...importsOf(text).map(({ name }) => name),
    ...[...text.matchAll(/^(?:export )?(?:async )?(?:const|let|function|class|interface|type) (\w+)/gm)].map(
      ([, name]) => name!,
    ),
    ...[...text.matchAll(/^const [{[]([^}\]]*)[}\]] =/gm)].flatMap(([, names]) =>
      names!.split(',').map((name) => name.split(':').at(-1)!.trim()),
    ),
  ]);
  const kept: Line[] = [];
  for (let at = 0; at < before.length; at++) {
    const { number, text: first } = before[at]!;
    let statement = first;
    if (first.startsWith('import ')) while (!statement.includes(';')) statement += ` ${before[++at]!.text}`;
    const [whole, type = '', names, module] = IMPORT.exec(statement) ?? [];
    if (whole !== undefined) {
      const rest = names!.split(',').map((name) => name.trim());
      const left = rest.filter(
        (name) =>
          name !== '' &&
          !own.has(
            name
              .replace(/^type /, '')
              .split(' as ')
              .at(-1)!,
          ),
      );
      if (left.length > 0) kept.push({ number, text: `import ${type}{ ${left.join(', ')} } from '${module}';` });
    } else if (!own.has(/^declare (?:const|function|let) (\w+)/.exec(first)?.[1] ?? ''))
      kept.push({ number, text: statement });
  }
  return kept;
}
