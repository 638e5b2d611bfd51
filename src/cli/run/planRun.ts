import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { CliError } from '../CliError.js';
import type { Given } from '../declare.js';
import { isRun, modelOf } from '../modelOf.js';
import { shellWord } from '../output/format.js';
import type { Config, RunOptions } from './options.js';
import { parseJson } from '../../support/parseJson.js';

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
  /** The data is still to be read from standard input into its file. */
  readonly isPiped?: boolean;
}

/** The run that a command line asks for: a new one, or one to resume. @throws CliError */
export async function planRun<O extends RunOptions>(
  { name, options }: RunCommand<O>,
  given: Given<O>,
  argument: string | undefined,
  nowMs: number,
): Promise<RunPlan<Config<O>>> {
  const { log, resume, data: inFile } = given as Readonly<Partial<Record<'log' | 'resume' | 'data', string>>>;
  const data = argument ?? inFile;
  const chosen = await withModels(options, chosenOf(options, given));
  if (resume !== undefined) {
    refuseChanges(options, data === undefined ? Object.keys(chosen) : ['data']);
    const saved = await readConfig(name, resume);
    for (const file of [saved.data, ...filesOf(options, saved)])
      if (!existsSync(file)) throw new CliError(`${file}: no such file`, { details: 'A file of the run has moved.' });
    // More passes are asked for instead of the number of steps that the run began with.
    const { steps: _, ...passes } = saved;
    const kept = chosen['epochs'] !== undefined && chosen['steps'] === undefined ? passes : saved;
    return {
      config: { ...defaultsOf(options), ...kept, ...chosen } as unknown as Config<O>,
      folder: resume,
      resumed: true,
    };
  }
  if (data === undefined) throw usage('No data', 'Give a file, - for standard input, or --resume <folder>.');
  for (const file of [...(data === STDIN ? [] : [data]), ...filesOf(options, chosen)])
    if (!existsSync(file)) throw new CliError(`${file}: no such file`);
  if ((chosen['model'] === undefined) === (chosen['from'] === undefined))
    throw usage(
      chosen['model'] === undefined ? 'No model' : 'Cannot specify both --model and --from',
      "Give --model <base model> ('tinker-rx model list' shows them) or --from <tinker:// path, or folder of a run>.",
    );
  if (chosen['model'] !== undefined && isRun(chosen['model'] as string))
    throw usage(`${chosen['model'] as string} is a run`, 'Train from its weights with --from instead of --model.');
  const time = new Date(nowMs).toISOString().slice(0, 19).replaceAll(':', '').replace('T', '-');
  const isPiped = data === STDIN;
  const folder = log ?? join('runs', `${isPiped ? 'stdin' : basename(data).replace(/\..*$/, '')}-${time}`);
  // What is piped in is read more than once, and again when the run is resumed: it is kept with the run.
  const file = resolve(isPiped ? join(folder, 'data.jsonl') : data);
  return {
    config: { command: name, ...defaultsOf(options), ...chosen, data: file } as unknown as Config<O>,
    folder,
    resumed: false,
    isPiped,
  };
}

/** Given as the file: read standard input. */
const STDIN = '-';

/** @throws CliError for data from standard input, where no run is made to keep it */
export function refusePipe(data: string | undefined, flag: string): void {
  if (data === STDIN) throw usage(`${flag} needs a file`, 'Standard input is kept only by a run that trains.');
}

/** The options with models given as folders of runs replaced by the paths of their checkpoints. */
async function withModels(
  options: RunOptions,
  chosen: Readonly<Record<string, unknown>>,
): Promise<Readonly<Record<string, unknown>>> {
  const named = async ([key, value]: [string, unknown]): Promise<[string, unknown]> => {
    const wants = options[key]?.isModel;
    if (wants === undefined) return [key, value];
    const nameOf = async (text: string) => (await modelOf(text, wants)).name;
    return [key, Array.isArray(value) ? await Promise.all(value.map(nameOf)) : await nameOf(value as string)];
  };
  return Object.fromEntries(await Promise.all(Object.entries(chosen).map(named)));
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

async function readConfig(name: string, folder: string): Promise<{ readonly data: string; readonly steps?: number }> {
  const file = join(folder, 'config.json');
  if (!existsSync(file)) throw new CliError(`${folder} holds no run`, { details: `There is no ${file}.` });
  const saved = parseJson(await readFile(file, 'utf8'), {}) as { readonly data?: unknown; readonly command?: unknown };
  if (typeof saved.data !== 'string') throw new CliError(`${file} is not what tinker-rx ${name} writes`);
  if (typeof saved.command === 'string' && saved.command !== name)
    throw new CliError(`${folder} holds a run of tinker-rx ${saved.command}`, {
      details: `Continue with: ${resumeCommand(saved.command, folder)}`,
    });
  return saved as { readonly data: string; readonly steps?: number };
}

const usage = (message: string, details: string): CliError => new CliError(message, { details, exitCode: 2 });
