/** What a reader of the README types, where only the package is installed. */
import { spawn } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { patternOf, shapeOf } from '../built/runSnippet.js';
import { execute, root, surroundings } from './execute.js';
import { folder, install, INSTALL, manifest, npm, npmEnvironment, readJson } from './installed.js';

const README = readFileSync(join(root, 'README.md'), 'utf8');

/** The commands of the README's block that ends in training, without comments. */
function commands(): string[] {
  const blocks = Array.from(README.matchAll(/^```sh\n([^]*?)^```/gm), ([, block]) => block!);
  const block = blocks.find((each) => each.includes('npx tinker-rx train node_modules/'))!;
  const lines = block.replace(/\\\n\s*/g, '').split('\n');
  return lines.map((line) => line.replace(/\s+#.*$/, '').trim()).filter((line) => line !== '');
}

/** Types lines into one shell and gives what was printed. What runs in the background ends with the shell. */
function typeInto(cwd: string, lines: readonly string[], env: Record<string, string>): Promise<string> {
  return new Promise((resolve, reject) => {
    const shell = spawn('bash', ['-c', ['set -ex', ...lines].join('\n')], {
      cwd,
      env: { ...surroundings(), ...env },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let printed = '';
    const keep = (text: string) => (printed += text);
    shell.stdout.setEncoding('utf8').on('data', keep);
    shell.stderr.setEncoding('utf8').on('data', keep);
    shell.on('error', reject);
    shell.on('exit', () => process.kill(-shell.pid!));
    shell.on('close', (code) => (code === 0 ? resolve(printed) : reject(new Error(printed))));
  });
}

/** A port that nobody listens on: the README's may be taken. */
const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });

it('four commands lead from an empty folder to a trained model', async () => {
  expect(commands()).toHaveLength(4);
  const port = String(await freePort());
  const typed = commands().map((command) => command.replaceAll('8000', port));
  const printed = await typeInto(folder('reader'), typed, await npmEnvironment());
  expect(Number(/^Loss +([\d.]+)/m.exec(printed)?.[1]), printed).toBeLessThan(0.1);
});

it('npx tinker-rx version prints the version', async () => {
  const { project } = await install();
  const printed = await execute('npx', ['--no-install', 'tinker-rx', 'version'], { cwd: project });
  expect(printed.trim()).toBe(`tinker-rx ${manifest.version}`);
});

it('npx tinker-rx demo prints what the README shows', async () => {
  const { project } = await install();
  const [, shown] = /```text\n(A Tinker service[^]*?)\n```/.exec(README)!;
  // The curve differs from machine to machine.
  const withoutCurve = (text: string) => text.replace(/[▁-█]+/g, '▁');
  const printed = await execute('npx', ['--no-install', 'tinker-rx', 'demo'], { cwd: project });
  expect(shapeOf(withoutCurve(printed))).toMatch(patternOf(withoutCurve(shown!)));
});

it('examples/testing passes on the installed package', async () => {
  const place = folder('testing');
  cpSync(join(root, 'examples/testing'), place, {
    recursive: true,
    filter: (path) => !path.endsWith('node_modules'),
  });
  const example = readJson<{ dependencies: Record<string, string> }>(join(place, 'package.json'));
  example.dependencies[manifest.name] = manifest.version;
  writeFileSync(join(place, 'package.json'), JSON.stringify(example));
  await npm(INSTALL, place);
  await execute('npm', ['run', 'typecheck'], { cwd: place });
  expect(await execute('npm', ['test'], { cwd: place })).toMatch(/\d+ passed/);
});
