/** The README's program, where the package is installed, on every runtime that it promises. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { patternOf, shapeOf } from '../built/runSnippet.js';
import { execute } from '../package/execute.js';
import { folder, install, INSTALL } from '../package/installed.js';
import { snippetsOf } from '../unit/docs/snippets.js';

/** npm packages of the runtimes, and how each runs a file. */
const RUNTIMES = [
  ['node@22', ['node']],
  ['node@24', ['node']],
  ['node@26', ['node']],
  ['bun@1', ['bun']],
  ['deno@2', ['deno', 'run', '--allow-all']],
] as const;

/** Installs a runtime from npm and gives the folder of its program. */
async function runtime(spec: string): Promise<string> {
  const place = folder(spec.replace('@', '-'));
  const allowScripts = { bun: true, deno: true, node: true };
  writeFileSync(join(place, 'package.json'), JSON.stringify({ private: true, allowScripts }));
  await execute('npm', [...INSTALL, spec], { cwd: place });
  return join(place, 'node_modules/.bin');
}

const [program] = snippetsOf('README.md');

it.each(RUNTIMES)('%s runs the program of the README', async (spec, [name, ...args]) => {
  const programs = await runtime(spec);
  const { project } = await install();
  const path = join(project, 'program.mjs');
  writeFileSync(path, program!.source);
  const printed = await execute(join(programs, name), [...args, path], { cwd: project });
  expect(shapeOf(printed)).toMatch(patternOf(program!.output!));
  const losses = Array.from(printed.matchAll(/^step \d+: ([\d.]+)/gm), ([, loss]) => Number(loss));
  expect(losses).toHaveLength(40);
  expect(losses.at(-1)).toBeLessThan(0.1);
});
