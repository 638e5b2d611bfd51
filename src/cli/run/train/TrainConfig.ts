import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import type { TrainOn } from '../../../chat/renderers/Renderer.js';
import type { SpendingOptions } from '../Spending.js';
import { CliError } from '../../CliError.js';
import { shellWord } from '../../output/format.js';
import { spendingOf } from '../runFolder.js';

/** What decides a run; kept as `config.json` in its folder, so that it can be gone on with. */
export interface TrainConfig {
  readonly data: string;
  readonly model?: string;
  readonly from?: string;
  readonly rank: number;
  readonly learningRate?: number;
  readonly schedule: 'constant' | 'linear' | 'cosine';
  readonly warmUp: number;
  readonly batchSize: number;
  readonly epochs: number;
  readonly steps?: number;
  readonly maxLength?: number;
  readonly renderer?: string;
  readonly trainOn?: TrainOn;
  readonly seed: number;
  readonly checkpointEvery: number;
  readonly checkpointTtl?: number;
  readonly ahead: number;
  readonly skipBadRows: boolean;
  /** A file of conversations that are not trained on, for the validation loss. */
  readonly validation?: string;
  /** Steps between two validations. Default: as often as checkpoints. */
  readonly validateEvery?: number;
}

export type TrainCommandOptions = Partial<Omit<TrainConfig, 'data'>> &
  SpendingOptions & {
    /** Estimate, and send nothing. */
    readonly dryRun?: boolean;
    readonly log?: string;
    readonly resume?: string;
    /** A port, or true for any free one. */
    readonly dashboard?: number | true;
  };

const DEFAULTS = {
  rank: 32,
  schedule: 'linear',
  warmUp: 0,
  batchSize: 128,
  epochs: 1,
  seed: 0,
  checkpointEvery: 20,
  ahead: 1,
  skipBadRows: false,
} as const;

/** All but these decide what the steps are, and a run that goes on must not change them. */
const MAY_CHANGE = ['checkpointEvery', 'checkpointTtl', 'ahead', 'validateEvery'] as const;
const KEYS = [
  ...Object.keys(DEFAULTS),
  ...['model', 'from', 'learningRate', 'steps', 'maxLength', 'renderer', 'trainOn', 'checkpointTtl', 'validateEvery'],
] as (keyof TrainConfig)[];

export interface TrainPlan {
  readonly config: TrainConfig;
  readonly folder: string;
  readonly resumed: boolean;
  readonly dashboard: number | true | undefined;
  readonly spending: SpendingOptions;
}

/** The run that a command line asks for: a new one, or one to go on with. */
export async function planRun(
  options: TrainCommandOptions,
  data: string | undefined,
  nowMs: number,
): Promise<TrainPlan> {
  const given = Object.fromEntries(
    KEYS.filter((key) => key in options).map((key) => [key, (options as Record<string, unknown>)[key]]),
  ) as Partial<TrainConfig>;
  const { dashboard, validation } = options;
  if (options.resume !== undefined) {
    if (validation !== undefined) throw keeps('validation');
    return { ...(await resumePlan(options.resume, given, data)), dashboard, spending: spendingOf(options) };
  }
  if (data === undefined) throw usage('No data', 'Give a file of conversations, or --resume <folder>.');
  for (const file of [data, ...(validation === undefined ? [] : [validation])]) {
    if (!existsSync(file)) throw new CliError(`${file}: no such file`);
  }
  if (given.validateEvery !== undefined && validation === undefined)
    throw usage('--validate-every without --validation', 'Give a file of held-out conversations with --validation.');
  if ((given.model === undefined) === (given.from === undefined))
    throw usage(
      given.model === undefined ? 'No model' : 'Cannot specify both --model and --from',
      "Give --model <base model> ('tinker-rx model list' shows them) or --from <tinker:// path>.",
    );
  const folder = options.log ?? join('runs', `${basename(data).replace(/\..*$/, '')}-${timeName(nowMs)}`);
  if (existsSync(join(folder, 'metrics.jsonl')))
    throw new CliError(`${folder} holds a run already`, {
      details: `Continue with: tinker-rx train --resume ${shellWord(folder)}\nOr choose another folder with --log.`,
    });
  const held = validation === undefined ? {} : { validation: resolve(validation) };
  return {
    config: { ...DEFAULTS, ...given, ...held, data: resolve(data) },
    folder,
    resumed: false,
    dashboard,
    spending: spendingOf(options),
  };
}

async function resumePlan(
  folder: string,
  given: Partial<TrainConfig>,
  data: string | undefined,
): Promise<Omit<TrainPlan, 'dashboard' | 'spending'>> {
  const fixed = Object.keys(given).filter((key) => !(MAY_CHANGE as readonly string[]).includes(key));
  if (data !== undefined || fixed.length > 0) throw keeps(data === undefined ? fixed.join(', ') : 'data');
  const file = join(folder, 'config.json');
  if (!existsSync(file)) throw new CliError(`${folder} holds no run`, { details: `There is no ${file}.` });
  const saved = await readConfig(file);
  for (const moved of [saved.data, saved.validation].filter((path) => path !== undefined && !existsSync(path)))
    throw new CliError(`${moved}: no such file`, { details: 'The data of the run has moved.' });
  return { config: { ...saved, ...given }, folder, resumed: true };
}

async function readConfig(file: string): Promise<TrainConfig> {
  const text = await readFile(file, 'utf8');
  try {
    const saved = JSON.parse(text) as TrainConfig;
    if (typeof saved.data === 'string') return saved;
  } catch {
    // Told below.
  }
  throw new CliError(`${file} is not what tinker-rx train writes`);
}

/** How conversations become examples in this run. */
export const datumOptions = ({ trainOn, maxLength }: TrainConfig): { trainOn?: TrainOn; maxLength?: number } => ({
  ...(trainOn === undefined ? {} : { trainOn }),
  ...(maxLength === undefined ? {} : { maxLength }),
});

const timeName = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replaceAll(':', '').replace('T', '-');
const keeps = (what: string) =>
  usage(
    `A resumed run keeps its ${what}`,
    'With --resume only --checkpoint-every, --checkpoint-ttl, --validate-every and --ahead can be given.',
  );
const usage = (message: string, details: string) => new CliError(message, { details, exitCode: 2 });
