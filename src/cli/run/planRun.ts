import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { CliError } from '../CliError.js';
import { shellWord } from '../output/format.js';
import type { Config, Given, RunOptions } from './options.js';

/** A command that trains, and its options. */
export interface RunCommand<O extends RunOptions> {
  readonly name: string;
  readonly options: O;
}

/** A run that a command line asks for. */
export interface RunPlan<C> {
  readonly config: C;
  readonly folder: string;
  readonly resumed: boolean;
}

/** The run that a command line asks for: a new one, or one to resume. @throws CliError */
export async function planRun<O extends RunOptions>(
  { name, options }: RunCommand<O>,
  given: Given<O>,
  data: string | undefined,
  nowMs: number,
): Promise<RunPlan<Config<O>>> {
  const { log, resume } = given as { readonly log?: string; readonly resume?: string };
  const chosen = chosenOf(options, given);
  if (resume !== undefined) {
    refuseChanges(options, data === undefined ? Object.keys(chosen) : ['data']);
    const saved = await readConfig(name, resume);
    for (const file of [saved.data, ...filesOf(options, saved)])
      if (!existsSync(file)) throw new CliError(`${file}: no such file`, { details: 'A file of the run has moved.' });
    return { config: { ...defaultsOf(options), ...saved, ...chosen } as Config<O>, folder: resume, resumed: true };
  }
  if (data === undefined) throw usage('No data', 'Give a file, or --resume <folder>.');
  for (const file of [data, ...filesOf(options, chosen)])
    if (!existsSync(file)) throw new CliError(`${file}: no such file`);
  if ((chosen['model'] === undefined) === (chosen['from'] === undefined))
    throw usage(
      chosen['model'] === undefined ? 'No model' : 'Cannot specify both --model and --from',
      "Give --model <base model> ('tinker-rx model list' shows them) or --from <tinker:// path>.",
    );
  const time = new Date(nowMs).toISOString().slice(0, 19).replaceAll(':', '').replace('T', '-');
  const folder = log ?? join('runs', `${basename(data).replace(/\..*$/, '')}-${time}`);
  return {
    config: { command: name, ...defaultsOf(options), ...chosen, data: resolve(data) } as unknown as Config<O>,
    folder,
    resumed: false,
  };
}

/** Refuses a new run in the folder of another one. @throws CliError */
export function refuseOldRun(name: string, folder: string): void {
  if (!existsSync(join(folder, 'metrics.jsonl'))) return;
  throw new CliError(`${folder} holds a run already`, {
    details: `Continue with: ${resumeCommand(name, folder)}\nOr choose another folder with --log.`,
  });
}

/** How to resume a run, as a command. */
export const resumeCommand = (command: string, folder: string, flags = ''): string =>
  `tinker-rx ${command} --resume ${shellWord(folder)}${flags === '' ? '' : ` ${flags}`}`;

/** The options on the command line that are saved with a run. Commander gives true for a `--no-` flag that is absent. */
function chosenOf(options: RunOptions, given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const chosen = Object.entries(options).filter(
    ([key, { flag, isTransient }]) =>
      isTransient !== true && given[key] !== undefined && !(flag.startsWith('--no-') && given[key] === true),
  );
  return Object.fromEntries(
    chosen.map(([key, { isFile }]) => [key, isFile === true ? resolve(given[key] as string) : given[key]]),
  );
}

const filesOf = (options: RunOptions, values: object): string[] =>
  Object.entries(values).flatMap(([key, value]) => (options[key]?.isFile === true ? [value as string] : []));

const defaultsOf = (options: RunOptions): object =>
  Object.fromEntries(
    Object.entries(options).flatMap(([key, option]) => (option.default === undefined ? [] : [[key, option.default]])),
  );

function refuseChanges(options: RunOptions, keys: readonly string[]): void {
  const fixed = keys.filter((key) => options[key]?.mayChange !== true);
  if (fixed.length === 0) return;
  const may = Object.values(options).flatMap(({ flag, mayChange }) =>
    mayChange === true ? [flag.split(' ')[0]!] : [],
  );
  throw usage(`A resumed run keeps its ${fixed.join(', ')}`, `With --resume these can be given: ${may.join(', ')}.`);
}

async function readConfig(name: string, folder: string): Promise<{ readonly data: string }> {
  const file = join(folder, 'config.json');
  if (!existsSync(file)) throw new CliError(`${folder} holds no run`, { details: `There is no ${file}.` });
  const text = await readFile(file, 'utf8');
  let saved: { readonly data?: unknown; readonly command?: unknown };
  try {
    saved = JSON.parse(text) as typeof saved;
  } catch {
    saved = {};
  }
  if (typeof saved.data !== 'string') throw new CliError(`${file} is not what tinker-rx ${name} writes`);
  if (typeof saved.command === 'string' && saved.command !== name)
    throw new CliError(`${folder} holds a run of tinker-rx ${saved.command}`, {
      details: `Continue with: ${resumeCommand(saved.command, folder)}`,
    });
  return saved as { readonly data: string };
}

const usage = (message: string, details: string): CliError => new CliError(message, { details, exitCode: 2 });
