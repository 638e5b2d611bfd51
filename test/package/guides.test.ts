/** Programs of the README and the guides, pasted as shown into a new project and run by the command beside them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { patternOf, shapeOf } from '../built/runSnippet.js';
import { PAGES, root, snippetsOf } from '../unit/docs/snippets.js';
import { execute } from './execute.js';
import { INSTALL, folder, npm, readJson } from './installed.js';

/** Pages with TypeScript of which nothing is run here, and why. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'docs/backpressure.md': 'explains parts of a pipeline; the programs of all other pages have that pipeline',
  'docs/conformance.md': 'needs the profile of a server of the reader',
  'docs/gguf.md': 'needs a real model, which test/model downloads',
  'docs/hosted-service.md': 'needs a key of the hosted service',
  'docs/laptop.md': 'needs a model of 90 MB or more, which test/model downloads',
  'docs/local-engine.md': 'is for those who change the engine',
  'docs/observability.md': 'needs a tracing backend; the sinks are read by test/python/openLogs.test.ts',
  'docs/operators.md': 'a reference: one line for each operator, compiled by test/unit/docs',
  'docs/sources-and-sinks.md': 'a reference: files, addresses and databases of the reader, compiled by test/unit/docs',
};

const text = (page: string) => readFileSync(join(root, page), 'utf8');
/** The lines of a page that a reader types into a shell, without comments. */
const typed = (page: string): string[] =>
  [...text(page).matchAll(/^```sh\n([^]*?)^```/gm)].flatMap(([, block]) =>
    block!.split('\n').map((line) => line.replace(/\s+#.*$/, '').trim()),
  );
/** The packages that the commands of a page install. */
const installed = (page: string): string[] =>
  typed(page).flatMap((line) => (line.startsWith('npm install ') ? line.split(' ').slice(2) : []));

const snippets = PAGES.flatMap((page) => snippetsOf(page));
const programs = snippets.filter(({ runs }) => runs);
const examples = PAGES.flatMap((page) =>
  typed(page)
    .filter((line) => line.startsWith('npx tsx node_modules/tinker-rx/examples/'))
    .map((command) => ({ page, command })),
);

let made: Promise<string> | undefined;
/** A project as `npm init -y` makes it, with what getting started and the guides install. */
const project = () =>
  (made ??= (async () => {
    const place = folder('guides');
    const shown = [...programs.map(({ file }) => file), ...examples.map(({ page }) => page)];
    const packages = [...installed('docs/getting-started.md'), ...shown.flatMap(installed)];
    await npm(['init', '-y'], place);
    await npm([...INSTALL, ...new Set(packages)], place);
    return place;
  })());
const run = async (command: string): Promise<string> => {
  const [program, ...args] = command.split(' ');
  return execute(program!, args, { cwd: await project(), env: { TINKER_API_KEY: '', TINKER_BASE_URL: '' } });
};

it('the project is of type commonjs, as npm 11 makes it', async () => {
  expect(Number((await npm(['--version'], await project())).split('.')[0])).toBeGreaterThanOrEqual(11);
  expect(readJson(join(await project(), 'package.json'))).toMatchObject({ type: 'commonjs' });
});

it('every page with TypeScript has something to run, or a reason why not', () => {
  const shown = new Set([...programs.map(({ file }) => file), ...examples.map(({ page }) => page)]);
  const pages = [...new Set(snippets.map(({ file }) => file))].sort();
  expect(pages.filter((page) => !shown.has(page))).toStrictEqual(Object.keys(NOT_RUN).sort());
});

it('a page installs what its programs import', () => {
  const everywhere = installed('docs/getting-started.md');
  const missing = programs.flatMap(({ file, shown }) =>
    [...shown.matchAll(/ from '((?:@[^/']+\/)?[^/']+)/g)]
      .map(([, name]) => name!)
      .filter((name) => !name.startsWith('node:') && ![...everywhere, ...installed(file)].includes(name))
      .map((name) => `${file}: ${name}`),
  );
  expect(everywhere).toStrictEqual(['tinker-rx', 'rxjs', 'tsx']);
  expect(missing).toStrictEqual([]);
});

describe('a program, as it is shown', () => {
  it.each(programs.map((snippet) => [`${snippet.file}:${snippet.line}`, snippet] as const))(
    '%s',
    async (_, { shown, output }) => {
      const [, file, command] = /^\/\/ ([\w-]+\.mts): (npx tsx \S+)\n/.exec(shown)!;
      writeFileSync(join(await project(), file!), `${shown}\n`);
      const printed = await run(command!);
      if (output !== undefined) expect(shapeOf(printed)).toMatch(patternOf(output));
    },
  );
});

describe('an example of the package, by the command that a page shows', () => {
  it.each(examples.map(({ page, command }) => [page, command] as const))('%s: %s', async (_, command) => {
    expect(await run(command)).toMatch(/\w/);
  });
});
