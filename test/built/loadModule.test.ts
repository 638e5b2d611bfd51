/** Modules that users write, loaded by Node itself: the test runner would load them in its own way. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { root } from '../unit/docs/snippets.js';

const folder = mkdtempSync(join(tmpdir(), 'tinker-rx-module-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What loading a module gives: its default export, or what is said of it. */
async function load(name: string, text: string, cwd = folder): Promise<string> {
  writeFileSync(join(folder, name), text);
  const loader = pathToFileURL(join(root, 'dist/cli/loadModule.js')).href;
  const program = `import { loadModule } from '${loader}';
    await loadModule(${JSON.stringify(join(folder, name))}).then(
      (module) => console.log(module.default),
      ({ message, details }) => console.log([message, details].filter(Boolean).join('\\n')),
    );`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { cwd });
  return stdout.trim();
}

describe('loadModule', () => {
  it('names the file and the line of a syntax error', async () => {
    const text = 'export default (answer) => {\n  return answer.text === ;\n};\n';
    expect(await load('broken.mjs', text)).toBe(`${join(folder, 'broken.mjs')}:2: SyntaxError: Unexpected token ';'`);
  });

  it('names the file and the line that throws', async () => {
    const text = "\nthrow new TypeError('no dictionary');\n";
    expect(await load('throws.mjs', text)).toBe(`${join(folder, 'throws.mjs')}:2: TypeError: no dictionary`);
  });

  it('names the file that imports what is not there', async () => {
    const said = await load('lost.mjs', "import 'not-installed-at-all';\n");
    expect(said).toContain(`${join(folder, 'lost.mjs')}: Cannot find package 'not-installed-at-all'`);
  });

  it('loads TypeScript with the tsx of the project, on any Node', async () => {
    expect(await load('reward.ts', "const kind: string = 'typed';\nexport default kind;\n", root)).toBe('typed');
  });

  it('names the file and the line of a syntax error in TypeScript', async () => {
    expect(await load('broken.ts', 'const a: number = 1;\nexport default (;\n', root)).toContain(
      `${join(folder, 'broken.ts')}:2`,
    );
  });

  // Node reads TypeScript by itself from 22.18 on.
  it.runIf(process.versions.node.startsWith('20.'))('says what a Node without TypeScript needs', async () => {
    expect(await load('alone.ts', 'export default 1 as number;\n')).toBe(
      `${join(folder, 'alone.ts')}: Node ${process.versions.node} does not load TypeScript\n` +
        'Install tsx in this folder (npm install tsx), or use Node 22.18 or newer, or write it as .mjs.',
    );
  });
});
