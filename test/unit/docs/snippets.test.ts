import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import ts from 'typescript';
import { beforeAll, describe, expect, it } from 'vitest';
import { pythonTable } from './pythonTable.js';
import { importsOf, PAGES, root, snippetsOf, type Snippet } from './snippets.js';

/** The native compiler, which takes half the CPU time. */
const TSC = `${root}node_modules/typescript-7/bin/tsc`;

/** What the compiler says of the snippets, each as `file:line: message`. One program for all of them. */
function mistakes(snippets: readonly Snippet[]): string[] {
  mkdirSync(`${root}artifacts`, { recursive: true });
  const folder = mkdtempSync(`${root}artifacts/snippets-`);
  try {
    const files = snippets.map((_, index) => `snippet-${index}.ts`);
    // As if beside the pages, so that hidden lines may import what is not public.
    snippets.forEach(({ source }, index) =>
      writeFileSync(`${folder}/${files[index]}`, `${source.replaceAll("'../src/", "'../../src/")}\nexport {};\n`),
    );
    // A block may show a name without using it.
    const compilerOptions = { noUnusedLocals: false, noUnusedParameters: false, tsBuildInfoFile: './tsbuildinfo' };
    const config = { extends: '../../tsconfig.json', compilerOptions, include: [], files };
    writeFileSync(`${folder}/tsconfig.json`, JSON.stringify(config));
    const { stdout, stderr } = spawnSync(process.execPath, [TSC, '-p', folder, '--pretty', 'false'], {
      cwd: folder,
      encoding: 'utf8',
    });
    // A message goes on in lines that are indented.
    const messages = `${stdout}${stderr}`.replace(/\n +/g, ' ').trim();
    return messages === '' ? [] : messages.split('\n').map((message) => inPage(message, snippets));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A message of the compiler with its place in the page. */
const inPage = (message: string, snippets: readonly Snippet[]): string =>
  message.replace(/^snippet-(\d+)\.ts\((\d+),\d+\): error TS\d+/, (_, index: string, at: string) => {
    const { file, lines, line } = snippets[Number(index)]!;
    return `${file}:${lines[Number(at) - 1] ?? line}`;
  });

/** A page with a mistake, so that the check is known to find some. */
const WRONG = [
  '<!-- snippet',
  "import { ServiceClient } from 'tinker-rx';",
  '-->',
  '```ts',
  'const service = new ServiceClient();',
  '```',
  '<!-- snippet: continues -->',
  '```ts',
  '',
  "service.fly('away');",
  '```',
].join('\n');

describe('snippets', () => {
  let found: readonly string[];
  const snippets = PAGES.flatMap((page) => snippetsOf(page));
  beforeAll(() => {
    found = mistakes([...snippets, pythonTable(), ...snippetsOf('wrong.md', WRONG)]);
  });

  it('of every page compile', () => {
    expect(snippets.length).toBeGreaterThan(20);
    expect(found.filter((mistake) => !mistake.startsWith('wrong.md'))).toStrictEqual([]);
  });

  it('that do not compile are named by file and line', () => {
    expect(found.filter((mistake) => mistake.startsWith('wrong.md'))).toStrictEqual([
      "wrong.md:10: Property 'fly' does not exist on type 'ServiceClient'.",
    ]);
  });

  it('of the table "From the Python SDK" are all found', () => {
    expect(
      pythonTable()
        .source.split('\n')
        .filter((line) => /^(void|try|\{)/.test(line)).length,
    ).toBeGreaterThan(24);
  });

  it('get the hidden lines, without what they import or declare themselves, unless they run', () => {
    const page = [
      ...[
        '<!-- snippet',
        "import { map, of } from 'rxjs';",
        'declare const a: number;',
        'declare const b: number;',
        '-->',
      ],
      ...['```ts', 'a;', '```'],
      ...['```ts', "import { of } from 'rxjs';", 'const a = of(1);', '```'],
      ...['<!-- snippet: runs -->', '```ts', "import 'rxjs';", '```', 'It prints', '```text', 'x', '```'],
    ].join('\n');
    const blocks = snippetsOf('page.md', page);
    expect(blocks.map(({ source }) => source)).toStrictEqual([
      "import { map, of } from 'rxjs';\ndeclare const a: number;\ndeclare const b: number;\na;",
      "import { map } from 'rxjs';\ndeclare const b: number;\nimport { of } from 'rxjs';\nconst a = of(1);",
      "import 'rxjs';",
    ]);
    expect(blocks.map(({ runs, output }) => [runs, output])).toStrictEqual([
      [false, undefined],
      [false, undefined],
      [true, 'x'],
    ]);
    expect(blocks[1]!.lines).toStrictEqual([2, 4, 10, 11]);
  });

  /** Names that a block uses and that only lines import which the reader does not see. */
  const hiddenImports = ({ code, shown, hidden }: Snippet): string[] => {
    const seen = new Set(importsOf(shown).map(({ name }) => name));
    const bare = code.replace(/^import [^;]*;/gm, '').replace(/\/\/.*$|\/\*[^]*?\*\/|'(?:[^'\\\n]|\\.)*'/gm, '');
    return importsOf(hidden).flatMap(({ name }) =>
      !seen.has(name) && new RegExp(`(?<![\\w.$])${name}(?![\\w$])`).test(bare) ? [name] : [],
    );
  };

  it('show every import that they use', () => {
    const wrong = snippetsOf('page.md', "<!-- snippet\nimport { of } from 'rxjs';\n-->\n```ts\nof(1);\n```");
    expect(wrong.flatMap(hiddenImports)).toStrictEqual(['of']);
    expect(
      snippets.flatMap((snippet) => hiddenImports(snippet).map((name) => `${snippet.file}:${snippet.line}: ${name}`)),
    ).toStrictEqual([]);
  });

  it('that continue another import nothing twice', () => {
    const twice = snippets.flatMap(({ file, line, shown }) => {
      const names = importsOf(shown).map(({ name }) => name);
      return names.filter((name, place) => names.indexOf(name) < place).map((name) => `${file}:${line}: ${name}`);
    });
    expect(twice).toStrictEqual([]);
  });

  it('subscribe to what they build', () => {
    // A pipeline that stands alone, and is neither kept nor subscribed to, does nothing when it is copied.
    const idle = (code: string) =>
      ts
        .createSourceFile('snippet.ts', code, ts.ScriptTarget.Latest)
        .statements.filter(
          (statement) =>
            ts.isExpressionStatement(statement) &&
            ts.isCallExpression(statement.expression) &&
            ts.isPropertyAccessExpression(statement.expression.expression) &&
            statement.expression.expression.name.text === 'pipe',
        );
    expect(idle('from([1]).pipe(map(String));')).toHaveLength(1);
    expect(snippets.flatMap(({ file, line, code }) => idle(code).map(() => `${file}:${line}`))).toStrictEqual([]);
  });

  it('that come first in a page, or run, spread no object', () => {
    const spreading = PAGES.flatMap((page) => snippetsOf(page).filter(({ runs }, place) => runs || place === 0)).filter(
      ({ code }) => /\.\.\.[\w{]/.test(code),
    );
    expect(spreading.map(({ file, line }) => `${file}:${line}`)).toStrictEqual([]);
  });

  it('that run say in which file they go, and how to run it', () => {
    const named = snippets
      .filter(({ runs }) => runs)
      .map(({ file, line, shown }) => `${file}:${line} ${shown.split('\n')[0]}`);
    expect(named.length).toBeGreaterThan(8);
    expect(named.filter((text) => !/ \/\/ ([\w-]+\.mts): npx tsx \1$/.test(text))).toStrictEqual([]);
  });
});
