import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { pythonTable } from './pythonTable.js';
import { PAGES, root, snippetsOf, type Snippet } from './snippets.js';

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
