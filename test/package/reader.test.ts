/** What a reader of the README types, where only the package is installed. */
import { spawn } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { patternOf, shapeOf } from '../built/runSnippet.js';
import { execute, root, surroundings } from './execute.js';
import { folder, install, INSTALL, manifest, npm, npmEnvironment, readJson } from './installed.js';

const README = readFileSync(join(root, 'README.md'), 'utf8');

/** The blocks of commands under the heading "Three ways to begin", each without its comments. */
function journeys(): string[][] {
  const [section] = README.split('\n## Three ways to begin\n')[1]!.split('\n## ');
  return Array.from(section!.matchAll(/^```sh\n([^]*?)^```/gm), ([, block]) =>
    block!
      .split('\n')
      .map((line) => line.replace(/\s+#.*$/, '').trim())
      .filter((line) => line !== ''),
  );
}

/** The TypeScript of the README that goes into a file of this name. */
const shown = (name: string): string =>
  new RegExp(`\`${name}\`:\\n\\n\`\`\`ts\\n([^]*?)^\`\`\``, 'm').exec(README)![1]!;

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

/** Types the commands of a journey, in an empty folder with some files, and gives what was printed. */
async function journey(place: number, files: Readonly<Record<string, string>>, input = ''): Promise<string> {
  const commands = journeys()[place]!;
  const [service, gateway] = [String(await freePort()), String(await freePort())];
  const own = folder(`journey-${place}`);
  const ported = (text: string) => text.replaceAll('8000', service).replaceAll('8080', gateway);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(own, name), ported(text));
  const typed = commands
    .map(ported)
    .map((line) => (line.includes(' chat ') ? `${line} --temperature 0 <<< '${input}'` : line));
  return typeInto(own, ['npm init -y', ...typed], await npmEnvironment());
}
const data = (name: string) => readFileSync(join(root, 'examples/data', name), 'utf8');

describe('from the README', () => {
  it('every journey has at most five commands', () => {
    expect(journeys().map(({ length }) => length)).toStrictEqual([5, 5, 5]);
  });

  it('an own chat file is trained on, and the model talked to', async () => {
    const printed = await journey(0, { 'chats.jsonl': data('questions.jsonl') }, 'What is the capital of France?');
    expect(Number(/^Loss +([\d.]+)/m.exec(printed)?.[1]), printed).toBeLessThan(0.1);
    expect(printed).toMatch(/^Paris$/m);
  });

  it('a GRPO run has an own reward, in TypeScript', async () => {
    const files = { 'tasks.jsonl': data('facts.jsonl'), 'reward.mts': shown('reward.mts') };
    const printed = await journey(1, files, 'What is the capital of France?');
    expect(printed).toMatch(/^Steps +8$/m);
    expect(printed).toMatch(/^Reward +[\d.]+$/m);
  });

  it('a served model is called by the openai client', async () => {
    const printed = await journey(2, { 'ask.mts': shown('ask.mts') });
    // What bash was told is printed with a plus sign; the answer is the line after the last command.
    expect(printed.split('+ npx tsx ask.mts\n')[1]?.trim(), printed).toMatch(/\w/);
  });
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
