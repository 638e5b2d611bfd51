import ts from 'typescript';
import { beforeAll, describe, expect, it } from 'vitest';
import { pythonTable } from './pythonTable.js';
import { PAGES, root, snippetsOf, type Snippet } from './snippets.js';

/** What the compiler says of the snippets, each as `file:line: message`. One program for all of them. */
function mistakes(snippets: readonly Snippet[]): string[] {
  const { config } = ts.readConfigFile(`${root}tsconfig.json`, (path) => ts.sys.readFile(path)) as { config: object };
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [] }, ts.sys, root);
  // A block may show a name without using it.
  const relaxed = { ...options, noUnusedLocals: false, noUnusedParameters: false, incremental: false };
  delete (relaxed as ts.CompilerOptions).tsBuildInfoFile;
  // Beside the pages, so that hidden lines may import what is not public.
  const files = new Map(snippets.map((snippet, index) => [`${root}docs/snippet-${index}.ts`, snippet]));
  const disk = ts.createCompilerHost(relaxed);
  const textOf = (path: string) => files.get(path) && `${files.get(path)!.source}\nexport {};\n`;
  const host: ts.CompilerHost = {
    ...disk,
    fileExists: (path) => files.has(path) || disk.fileExists(path),
    readFile: (path) => textOf(path) ?? disk.readFile(path),
    getSourceFile: (path, languageVersion, ...rest) => {
      const text = textOf(path);
      return text === undefined
        ? disk.getSourceFile(path, languageVersion, ...rest)
        : ts.createSourceFile(path, text, languageVersion, true);
    },
  };
  const program = ts.createProgram({ rootNames: [...files.keys()], options: relaxed, host });
  return [...files].flatMap(([path, { file, lines, line }]) => {
    const source = program.getSourceFile(path)!;
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
    return found.map(({ start = 0, messageText }) => {
      const { line: at } = source.getLineAndCharacterOfPosition(start);
      return `${file}:${lines[at] ?? line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
    });
  });
}

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
  }, 120_000);

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

  it('stand alone where they have imports, else get the hidden lines', () => {
    const page = [
      ...['<!-- snippet', 'declare const a: number;', '-->', '```ts', 'a;', '```'],
      ...['```ts', "import 'rxjs';", '```', '```ts', 'a + 1;', '```'],
      ...['<!-- snippet: runs -->', '```ts', "import 'rxjs';", '```', 'It prints', '```text', 'x', '```'],
    ].join('\n');
    const found = snippetsOf('page.md', page);
    expect(found.map(({ source }) => source)).toStrictEqual([
      'declare const a: number;\na;',
      "import 'rxjs';",
      'declare const a: number;\na + 1;',
      "import 'rxjs';",
    ]);
    expect(found.map(({ runs, output }) => [runs, output])).toStrictEqual([
      [false, undefined],
      [false, undefined],
      [false, undefined],
      [true, 'x'],
    ]);
    expect(found[2]!.lines).toStrictEqual([2, 11]);
  });
});
