import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import type { SpendingOptions } from './Spending.js';
import { CliError } from '../CliError.js';
import { withoutUndefined } from '../../client/connection/prepare.js';
import { resumeCommand } from './followRun.js';

/** What every command that trains keeps of a run. */
export interface RunConfig {
  readonly data: string;
  readonly model?: string;
  readonly from?: string;
}

/** A run that a command line asks for. */
export interface RunPlan<C> {
  readonly config: C;
  readonly folder: string;
  readonly resumed: boolean;
  readonly dashboard: number | true | undefined;
  readonly spending: SpendingOptions;
}

export interface RunFolderOptions extends SpendingOptions {
  readonly log?: string;
  readonly resume?: string;
  /** A port, or true for any free one. */
  readonly dashboard?: number | true;
}

export interface RunShape<C> {
  /** The command's name, for hints. */
  readonly command: string;
  readonly defaults: Partial<C>;
  /** Options beside those that have defaults. */
  readonly others: readonly (keyof C & string)[];
  /** Options that a resumed run may change: they do not decide what its steps are. */
  readonly mayChange: readonly (keyof C & string)[];
}

/** The run that a command line asks for: a new one, or one to resume. @throws CliError */
export async function planFolder<C extends RunConfig>(
  { command, defaults, others, mayChange }: RunShape<C>,
  options: RunFolderOptions & Readonly<Record<string, unknown>>,
  data: string | undefined,
  nowMs: number,
): Promise<RunPlan<C>> {
  const keys = [...Object.keys(defaults), 'model', 'from', ...others].filter((key) => options[key] !== undefined);
  const given = Object.fromEntries(keys.map((key) => [key, options[key]])) as Partial<C>;
  const { dashboard } = options;
  if (options.resume !== undefined) {
    const fixed = keys.filter((key) => !(mayChange as readonly string[]).includes(key));
    if (data !== undefined || fixed.length > 0)
      throw usage(`A resumed run keeps its ${data === undefined ? fixed.join(', ') : 'data'}`, 'Leave it out.');
    const saved = await readConfig<C>(join(options.resume, 'config.json'), command);
    return {
      config: { ...saved, ...given },
      folder: options.resume,
      resumed: true,
      dashboard,
      spending: spendingOf(options),
    };
  }
  if (data === undefined) throw usage('No data', 'Give a file, or --resume <folder>.');
  if (!existsSync(data)) throw new CliError(`${data}: no such file`);
  if ((given.model === undefined) === (given.from === undefined))
    throw usage(
      given.model === undefined ? 'No model' : 'Cannot specify both --model and --from',
      "Give --model <base model> ('tinker-rx model list' shows them) or --from <tinker:// path>.",
    );
  const time = new Date(nowMs).toISOString().slice(0, 19).replaceAll(':', '').replace('T', '-');
  const folder = options.log ?? join('runs', `${basename(data).replace(/\..*$/, '')}-${time}`);
  if (existsSync(join(folder, 'metrics.jsonl')))
    throw new CliError(`${folder} holds a run already`, {
      details: `Continue with: ${resumeCommand(command, folder)}\nOr choose another folder with --log.`,
    });
  return {
    config: { ...defaults, ...given, data: resolve(data) } as C,
    folder,
    resumed: false,
    dashboard,
    spending: spendingOf(options),
  };
}

async function readConfig<C extends RunConfig>(file: string, command: string): Promise<C> {
  if (!existsSync(file)) throw new CliError(`${file}: no such file`, { details: 'The folder holds no run.' });
  const wrong = new CliError(`${file} is not what tinker-rx ${command} writes`);
  let saved: C;
  try {
    saved = JSON.parse(await readFile(file, 'utf8')) as C;
  } catch {
    throw wrong;
  }
  if (typeof saved.data !== 'string') throw wrong;
  if (!existsSync(saved.data))
    throw new CliError(`${saved.data}: no such file`, { details: 'The data of the run has moved.' });
  return saved;
}

const usage = (message: string, details: string): CliError => new CliError(message, { details, exitCode: 2 });

/** What a command line says about money. */
export const spendingOf = ({ budgetUsd, budgetTokens, prices }: SpendingOptions): SpendingOptions =>
  withoutUndefined({ budgetUsd, budgetTokens, prices });
