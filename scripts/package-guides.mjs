/** The programs of the packed pages, tried where only the package is installed. */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { pagesIn } from './dead-links.mjs';
import { execute, root } from './steps.mjs';

/** What the tests of the pages read them with. Loaded late: it needs packages that may not be installed yet. */
async function readers() {
  const { tsImport } = await import('tsx/esm/api');
  const load = (path) => tsImport(pathToFileURL(join(root, path)).href, import.meta.url);
  return { ...(await load('test/unit/docs/snippets.ts')), ...(await load('test/loopback/support/runSnippet.ts')) };
}

/** The TypeScript of every page of an installed package, without what needs the sources: how the embedded engine works inside. */
async function snippetsIn(installed) {
  const { snippetsOf } = await readers();
  return pagesIn(installed)
    .flatMap((page) => snippetsOf(page, readFileSync(join(installed, page), 'utf8')))
    .filter(({ source }) => !source.includes("from '../src/"));
}

/** Packages that a page tells to install beside this one. They are here already, so their types are linked from here. */
const BESIDE = ['@ai-sdk/openai-compatible', '@ai-sdk/provider', 'ai', 'openai', 'rxjs-marbles', 'vitest'];

/** Compiles every block of every page in the project, all in one go. */
export async function typeCheckGuides(project, installed) {
  const snippets = await snippetsIn(installed);
  const place = join(project, 'guides');
  for (const name of BESIDE) {
    const link = join(place, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), link, 'dir');
  }
  const names = snippets.map((_, index) => `block-${index}.ts`);
  snippets.forEach(({ source }, index) => writeFileSync(join(place, names[index]), `${source}\nexport {};\n`));
  const compilerOptions = {
    ...{ target: 'ES2022', lib: ['ES2023', 'ESNext.Disposable'], module: 'NodeNext', types: ['node'], noEmit: true },
    ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: true },
  };
  writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: names }));
  const compiler = join(root, 'node_modules/typescript-7/bin/tsc');
  await execute(process.execPath, [compiler, '-p', place]).catch(({ message }) => {
    const inPage = (_, index, line) =>
      `${snippets[index].file}:${snippets[index].lines[line - 1] ?? snippets[index].line}: `;
    throw new Error(message.replace(/\S*block-(\d+)\.ts\((\d+),\d+\): /g, inPage));
  });
  return `${snippets.length} blocks of ${new Set(snippets.map(({ file }) => file)).size} pages`;
}

const MARK = '== program ';
/** One process for many programs: loading the package takes longer than some of them run. */
const RUNNER = `
for (const path of process.argv.slice(2)) {
  console.log('${MARK}' + path);
  await import(path);
}
`;

/** What each of the programs prints. */
async function outputsOf(project, names) {
  const printed = await execute(process.execPath, ['run-guides.mjs', ...names], { cwd: project });
  return printed.split(new RegExp(`^${MARK}.*\n`, 'm')).slice(1);
}

/** Runs every program that a page marks as one, and compares what it prints with what the page shows. */
export async function runGuides(project, installed) {
  const { shapeOf, patternOf } = await readers();
  const { default: ts } = await import('typescript');
  const all = (await snippetsIn(installed)).filter(({ runs }) => runs);
  // A program with a clock mostly waits for it: it runs beside the others.
  const waits = ({ source }) => source.includes('clockMs');
  const programs = [...all.filter((program) => !waits(program)), ...all.filter(waits)];
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true };
  const names = programs.map((_, index) => `./program-${index}.mjs`);
  programs.forEach(({ source }, index) => {
    writeFileSync(join(project, names[index]), ts.transpileModule(source, { compilerOptions }).outputText);
  });
  writeFileSync(join(project, 'run-guides.mjs'), RUNNER);
  const firstWaiting = programs.findIndex(waits);
  const halves = [names.slice(0, firstWaiting), names.slice(firstWaiting)];
  const outputs = (await Promise.all(halves.map((half) => outputsOf(project, half)))).flat();
  const wrong = programs.flatMap(({ file, line, output = '…' }, index) =>
    patternOf(output).test(shapeOf(outputs[index] ?? 'nothing')) ? [] : [`${file}:${line} prints\n${outputs[index]}`],
  );
  if (wrong.length > 0) throw new Error(wrong.join('\n'));
  // The first program of a page, and the numbers that it prints.
  const numbers = (page, pattern) => {
    const printed = outputs[programs.findIndex(({ file }) => file === page)] ?? '';
    return Array.from(printed.matchAll(pattern), ([, number]) => Number(number));
  };
  const losses = numbers('README.md', /^step \d+: ([\d.]+)/gm);
  if (losses.length !== 40 || !(losses.at(-1) < 0.1)) throw new Error(`README.md: losses are ${losses.join(', ')}`);
  const rewards = numbers('docs/rl.md', /reward ([\d.]+)$/gm);
  if (!(rewards[0] < 0.3 && rewards.at(-1) > 0.8)) throw new Error(`docs/rl.md: rewards are ${rewards.join(', ')}`);
  return programs.map(({ file, line }) => `${file}:${line}`).join('\n');
}

/** Compares what the demo prints with what the README shows. The curve differs from machine to machine. */
export async function expectDemo(printed, installed) {
  const { shapeOf, patternOf } = await readers();
  const withoutCurve = (text) => text.replace(/[▁-█]+/g, '▁');
  const [, shown] = /```text\n(A Tinker service[^]*?)\n```/.exec(readFileSync(join(installed, 'README.md'), 'utf8'));
  if (!patternOf(withoutCurve(shown)).test(shapeOf(withoutCurve(printed))))
    throw new Error(`the demo does not print what the README shows:\n${printed}`);
}
