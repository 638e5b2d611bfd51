/** Named steps, in order, some beside the others: each is counted, and only a step that all others need ends the run. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

/** No step waits longer than this for a program: a hanging one must not hang the machine it runs on. */
const LONGEST_MS = 15 * 60_000;
const LINES_KEPT = 200;

const children = new Set();
process.on('exit', () => children.forEach((child) => child.kill()));

/**
 * Runs a program and gives what it printed. With `show`, its output also goes where ours goes, as it comes.
 *
 * @throws Error that names the command and, unless it was shown, has the end of its output
 */
export function execute(program, args = [], { cwd = root, env = {}, show = false, timeoutMs = LONGEST_MS } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, env: { ...surroundings(), ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    children.add(child);
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
      children.delete(child);
      if (code === 0) resolve(stdout);
      else if (signal === 'SIGKILL') fail(`killed, after at most ${timeoutMs / 60_000} minutes`);
      else fail(`exit code ${code ?? signal}`);
    });
  });
}

/** What the programs have used so far, where the system tells: the time that remains the same on a busy machine. */
function childrenCpuSeconds() {
  try {
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ');
    // Of children that have ended, in user and in system mode, in hundredths of a second.
    return (Number(fields[13]) + Number(fields[14])) / 100;
  } catch {
    return undefined;
  }
}

/** Our environment without what `npm run` adds to it: a program started here may work in another folder. */
export function surroundings() {
  const added = /^npm_(package|lifecycle)_|^npm_(command|execpath|node_execpath|config_local_prefix)$/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !added.test(name)));
}

/** A step that runs a program and shows its output, unless it runs beside others. */
export const command = (name, program, args, options = {}) => {
  const { needed = false, early = false, side = false, spare = false, ...rest } = options;
  const quiet = early || side || spare;
  const run = () => execute(program, args, { show: !quiet, ...rest });
  return { name, needed, early, side, spare, run: () => run().then((told) => (quiet ? told.trimEnd() : undefined)) };
};

/** Runs a step: how it went, how long it took, and what it had to tell. */
async function perform({ name, needed = false, run }) {
  const from = Date.now();
  const outcome = await Promise.resolve()
    .then(run)
    .then(
      (told) => ({ passed: true, told }),
      (error) => ({ passed: false, told: error.message }),
    );
  return { name, needed, ...outcome, seconds: (Date.now() - from) / 1000 };
}

/**
 * Runs the steps in order, says of each how it went and how long it took, ends in the line `N passed, N failed`, and sets
 * the exit code. What a step returns is told beside its name. `ending` gives lines to print before the list of steps.
 *
 * `needed` steps end the run when they fail. As soon as those at the start are done, two kinds are begun that must not show output
 * of their own, and are told of in their turn: all `early` ones at once, which wait for the network; and the `side` ones, one after
 * the other, which use a core that the steps in front leave idle. `spare` ones need no other step, and must not show output either:
 * whoever is done first takes the next of them, the side or those in front, so that both end together. They come after the last step in
 * front, and what is to run alone after all `side` ones.
 */
export async function runSteps(steps, ending = () => []) {
  const started = Date.now();
  const outcomes = [];
  const begun = new Map();
  const spare = steps.filter((step) => step.spare);
  const takeSpare = async () => {
    for (let step = spare.shift(); step !== undefined; step = spare.shift()) {
      const performed = perform(step);
      begun.set(step, performed);
      await performed;
    }
  };
  const begin = () => {
    let last = Promise.resolve();
    for (const step of steps) {
      if (step.early) begun.set(step, perform(step));
      else if (step.side) begun.set(step, (last = last.then(() => perform(step))));
    }
    void last.then(takeSpare);
  };
  const firstFree = steps.findIndex(({ needed = false }) => !needed);
  for (const [place, step] of steps.entries()) {
    if (place === firstFree) begin();
    if (step.spare) await takeSpare();
    console.log(`\n== ${step.name}`);
    const outcome = await (begun.get(step) ?? perform(step));
    outcomes.push(outcome);
    if (outcome.told !== undefined && outcome.told !== '') console.log(outcome.told);
    if (outcome.passed) continue;
    console.log(`FAILED: ${step.name}`);
    if (!outcome.needed) continue;
    console.log('The remaining steps need this one and were not run.');
    break;
  }
  const failed = outcomes.filter(({ passed }) => !passed).length;
  console.log(['', ...ending(), ''].join('\n'));
  for (const { name, passed, seconds } of outcomes.sort((a, b) => b.seconds - a.seconds))
    console.log(`${passed ? 'passed' : 'FAILED'} ${seconds.toFixed(1).padStart(6)} s  ${name}`);
  const cpu = childrenCpuSeconds();
  console.log(
    `${''.padEnd(7)}${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s  in all` +
      (cpu === undefined ? '' : `, with ${cpu.toFixed(0)} s of CPU time on ${availableParallelism()} cores`),
  );
  console.log(`${outcomes.length - failed} passed, ${failed} failed`);
  // What was begun and not waited for has nothing to go on for.
  process.exit(failed === 0 ? 0 : 1);
}
