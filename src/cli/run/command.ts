import { Option, type Command } from 'commander';
import { integer, lazily, type Declaration } from '../declare.js';
import { DISTILL, DPO, GRPO, TRAIN, type RunOption, type RunOptions } from './options.js';
import { RUN_COLUMNS } from './runColumns.js';

/** `train`, `dpo`, `distill`, `grpo`: what makes a run. */
export function declareTraining(program: Command, declaration: Declaration): void {
  const declare = (name: string, about: string, data: readonly [name: string, about: string], options: RunOptions) => {
    const command = program
      .command(name)
      .description(about)
      .argument(`[${data[0]}]`, `${data[1]}; not needed with --resume`);
    for (const option of Object.values(options)) command.addOption(toCommander(option));
    return command;
  };
  declare(
    'train',
    'Fine-tune a model on conversations in a JSONL, JSON, CSV or Parquet file',
    ['data', 'file of conversations'],
    TRAIN,
  ).action(lazily(declaration, () => import('./train/train.js')));
  declare(
    'dpo',
    'Train a model on preferences in a JSONL, JSON, CSV or Parquet file',
    ['data', 'file of preferences'],
    DPO,
  ).action(lazily(declaration, () => import('./dpo.js')));
  declare(
    'distill',
    'Teach a model on its own answers to prompts, graded token by token by a teacher',
    ['prompts', 'file of prompts, one per line: text, or JSON (a string, {prompt}, {messages})'],
    DISTILL,
  ).action(lazily(declaration, () => import('./distill.js')));
  declare(
    'grpo',
    'Train a model by reinforcement: a file of tasks, and a module that grades the answers',
    ['tasks', 'file of tasks: JSONL, CSV or Parquet'],
    GRPO,
  ).action(lazily(declaration, () => import('./grpo/grpo.js')));
}

/** Commander is told no default: a resumed run has to know what the user gave. */
function toCommander({ flag, help, parse, choices, default: value }: RunOption): Option {
  const told = value === undefined || typeof value === 'boolean' ? help : `${help} (default: ${value})`;
  const option = new Option(flag, told);
  if (parse !== undefined) option.argParser<unknown>((text, before) => parse(text, before as never));
  return choices === undefined ? option : option.choices(choices);
}

/** `run`: what the service knows of runs. */
export function declareRun(program: Command, declaration: Declaration): void {
  const run = program.command('run').description('Manage training runs');
  const columns = Object.entries(RUN_COLUMNS).map(([name, { about }]) => `${name} (${about})`);
  run
    .command('list')
    .description('List all training runs')
    .option('--limit <n>', 'maximum number of runs (0 = all)', integer(0), 20)
    .option('-c, --columns <names>', `comma list of columns: ${columns.join(', ')}`)
    .action(lazily(declaration, () => import('./list.js')));
  run
    .command('info')
    .description('Show details of a specific run')
    .argument('<run-id>')
    .action(lazily(declaration, () => import('./info.js')));
}
