import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

export interface ExecuteOptions {
  /** Default: the repository. */
  readonly cwd?: string;
  /** Added to our environment. */
  readonly env?: Record<string, string>;
}

/** Our environment without what `npm run` adds to it: a program started here may work in another folder. */
export function surroundings(): NodeJS.ProcessEnv {
  const added =
    /^npm_(package|lifecycle)_|^npm_(command|execpath|node_execpath|config_local_prefix)$|^VITEST|^NODE_ENV$/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !added.test(name)));
}

/** Runs a program and gives what it printed. @throws Error with the command and all of its output */
export function execute(
  program: string,
  args: readonly string[],
  { cwd = root, env = {} }: ExecuteOptions = {},
): Promise<string> {
  const options = { cwd, env: { ...surroundings(), ...env }, maxBuffer: 2 ** 28 };
  return new Promise((resolve, reject) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${[program, ...args].join(' ')}: ${error.message}\n${stdout}\n${stderr}`));
    });
  });
}
