/** Named steps, one after the other: each is counted, and only a step that all others need ends the run. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

/** No step waits longer than this for a program: a hanging one must not hang the machine it runs on. */
const LONGEST_MS = 15 * 60_000;
const LINES_KEPT = 60;

/**
 * Runs a program and gives what it printed. With `show`, its output also goes where ours goes, as it comes.
 *
 * @throws Error that names the command and, unless it was shown, has the end of its output
 */
export function execute(program, args = [], { cwd = root, env = {}, show = false, timeoutMs = LONGEST_MS } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, env: { ...surroundings(), ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let all = '';
    const keep = (stream) => (chunk) => {
      all += chunk;
      if (stream === process.stdout) stdout += chunk;
      if (show) stream.write(chunk);
    };
    child.stdout.setEncoding('utf8').on('data', keep(process.stdout));
    child.stderr.setEncoding('utf8').on('data', keep(process.stderr));
    const late = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    const fail = (why) => {
      const tail = show ? '' : `\n${all.trimEnd().split('\n').slice(-LINES_KEPT).join('\n')}`;
      reject(new Error(`${[program, ...args].join(' ')}: ${why}${tail}`));
    };
    child.on('error', (error) => {
      clearTimeout(late);
      fail(error.message);
    });
    child.on('close', (code, signal) => {
      clearTimeout(late);
      if (code === 0) resolve(stdout);
      else if (signal === 'SIGKILL') fail(`killed, after at most ${timeoutMs / 60_000} minutes`);
      else fail(`exit code ${code ?? signal}`);
    });
  });
}

/** Our environment without what `npm run` adds to it: a program started here may work in another folder. */
function surroundings() {
  const added = /^npm_(package|lifecycle)_|^npm_(command|execpath|node_execpath|config_local_prefix)$/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !added.test(name)));
}

/** A step that runs a program and shows its output. */
export const command = (name, program, args, options = {}) => ({
  name,
  needed: options.needed ?? false,
  run: () => execute(program, args, { show: true, ...options }).then(() => undefined),
});

/**
 * Runs the steps, says of each how it went and how long it took, ends in the line `N passed, N failed`, and sets the
 * exit code. What a step returns is told beside its name.
 */
export async function runSteps(steps) {
  const started = Date.now();
  const outcomes = [];
  for (const { name, needed = false, run } of steps) {
    console.log(`\n== ${name}`);
    const from = Date.now();
    const outcome = await run().then(
      (told) => ({ name, passed: true, told }),
      (error) => ({ name, passed: false, told: error.message }),
    );
    outcomes.push({ ...outcome, seconds: (Date.now() - from) / 1000 });
    if (outcome.told !== undefined) console.log(outcome.told);
    if (!outcome.passed) console.log(`FAILED: ${name}`);
    if (!outcome.passed && needed) {
      console.log('The remaining steps need this one and were not run.');
      break;
    }
  }
  const failed = outcomes.filter(({ passed }) => !passed).length;
  console.log();
  for (const { name, passed, seconds } of outcomes)
    console.log(`${passed ? 'passed' : 'FAILED'} ${seconds.toFixed(1).padStart(6)} s  ${name}`);
  console.log(`${''.padEnd(7)}${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s  in all`);
  console.log(`${outcomes.length - failed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}
