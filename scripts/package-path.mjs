/** What a reader of the README types, in an empty folder, until there is a trained model. */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { root, surroundings } from './steps.mjs';

const MOST_COMMANDS = 4;
const MOST_MS = 5 * 60_000;
const TRAINED_LOSS = 0.1;

/** The commands of the README's block that ends in training, without comments. */
function commandsOf(readme) {
  const blocks = Array.from(readme.matchAll(/^```sh\n([^]*?)^```/gm), ([, block]) => block);
  const block = blocks.find((each) => each.includes('npx tinker-rx train node_modules/'));
  if (block === undefined) throw new Error('README.md shows no commands that train');
  const lines = block.replace(/\\\n\s*/g, '').split('\n');
  return lines.map((line) => line.replace(/\s+#.*$/, '').trim()).filter((line) => line !== '');
}

/**
 * Runs the commands in one shell, as they are but for a free port, and tells how long each took. `registry` is the environment in
 * which npm installs the tarball. Fails where a command does, where there are more than four, and where the model did not learn.
 */
export async function readersPath(folder, registry) {
  const commands = commandsOf(readFileSync(join(root, 'README.md'), 'utf8'));
  if (commands.length > MOST_COMMANDS) throw new Error(`${commands.length} commands:\n${commands.join('\n')}`);
  const port = await freePort();
  const typed = commands.map((command) => command.replaceAll('8000', String(port)));
  mkdirSync(folder, { recursive: true });
  const { printed, doneAt } = await typeInto(folder, typed, registry);
  const loss = Number(/^Loss +([\d.]+)/m.exec(printed)?.[1]);
  if (!(loss < TRAINED_LOSS)) throw new Error(`the last loss is ${loss}\n${printed}`);
  const seconds = (from, to) => `${((doneAt[to] - doneAt[from]) / 1000).toFixed(1).padStart(5)} s`;
  return [
    ...commands.map((command, index) => `${index + 1}. ${seconds(index, index + 1)}  ${command}`),
    `   ${seconds(0, commands.length)}  in all`,
  ].join('\n');
}

const MARK = '== done';

/** Types lines into a shell: all that is printed, and when the shell began and each line was done. */
function typeInto(cwd, lines, env) {
  const script = ['set -e', `echo '${MARK}'`, ...lines.flatMap((line) => [line, `echo '${MARK}'`])].join('\n');
  return new Promise((resolve, reject) => {
    // A group, so that what was started in the background ends with the shell.
    const options = { cwd, env: { ...surroundings(), ...env }, detached: true, stdio: ['ignore', 'pipe', 'pipe'] };
    const shell = spawn('bash', ['-c', script], options);
    const end = () => {
      try {
        process.kill(-shell.pid);
      } catch {
        // It has ended.
      }
    };
    process.once('exit', end);
    const late = setTimeout(end, MOST_MS);
    const doneAt = [];
    let printed = '';
    const keep = (text) => {
      printed += text;
      for (const _ of text.matchAll(new RegExp(MARK, 'g'))) doneAt.push(Date.now());
    };
    shell.stdout.setEncoding('utf8').on('data', keep);
    shell.stderr.setEncoding('utf8').on('data', keep);
    shell.on('error', reject);
    shell.on('exit', end);
    shell.on('close', (code) => {
      clearTimeout(late);
      process.off('exit', end);
      if (code === 0) resolve({ printed, doneAt });
      else reject(new Error(`command ${doneAt.length} failed: ${lines[doneAt.length - 1]}\n${printed}`));
    });
  });
}

/** A port that nobody listens on: the README's may be taken. */
const freePort = () =>
  new Promise((resolve, reject) => {
    const server = createServer().on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
