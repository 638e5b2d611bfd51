/** The README's program, where the package is installed, on every runtime that it promises. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { patternOf, shapeOf } from '../built/runSnippet.js';
import { execute } from '../package/execute.js';
import { ENTRIES, folder, install, INSTALL } from '../package/installed.js';
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

it('Node 18 is told which version is needed, by the command and by every import', async () => {
  const node = join(await runtime('node@18'), 'node');
  const { project, installed } = await install();
  const message = /Error: tinker-rx needs Node 20\.18 or newer, and this is Node 18\.\d+\.\d+\n/;
  await expect(execute(node, [join(installed, 'dist/cli/main.js'), 'demo'], { cwd: project })).rejects.toThrow(message);
  for (const path of ENTRIES) {
    const program = `import '${path.replace('.', 'tinker-rx')}';`;
    await expect(
      execute(node, ['--input-type=module', '-e', program], { cwd: project }),
      `${path} on Node 18`,
    ).rejects.toThrow(message);
  }
});
