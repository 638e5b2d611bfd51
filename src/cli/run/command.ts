import type { Command } from 'commander';
import { addConfigFile } from '../configFile.js';
import { integer, type Add, type CommandOptions } from '../declare.js';
import { DISTILL, DPO, GRPO, TRAIN, type RunOptions } from './options.js';
import { RUN_COLUMNS } from './runColumns.js';

const OR_NOT = 'or - for standard input (JSON lines); not needed with --resume or --config';

/** `train`, `dpo`, `distill`, `grpo`: what makes a run. */
export function declareTraining(program: Command, add: Add): void {
  addConfigFile(
    add(program, 'train', () => import('./train/train.js'), untold(TRAIN)),
    'data',
  )
    .description('Fine-tune a model on conversations in a JSONL, JSON, CSV or Parquet file')
    .argument('[data]', `file of conversations, ${OR_NOT}`);
  addConfigFile(
    add(program, 'dpo', () => import('./dpo.js'), untold(DPO)),
    'data',
  )
    .description('Train a model on preferences in a JSONL, JSON, CSV or Parquet file')
    .argument('[data]', `file of preferences, ${OR_NOT}`);
  const prompts = `file of prompts, one per line: text, or JSON (a string, {prompt}, {messages}), ${OR_NOT}`;
  addConfigFile(
    add(program, 'distill', () => import('./distill.js'), untold(DISTILL)),
    'data',
  )
    .description('Teach a model on its own answers to prompts, graded token by token by a teacher')
    .argument('[prompts]', prompts);
  addConfigFile(
    add(program, 'grpo', () => import('./grpo/grpo.js'), untold(GRPO)),
    'data',
  )
    .description('Train a model by reinforcement: a file of tasks, and a module that grades the answers')
    .argument('[tasks]', `file of tasks: JSONL, CSV or Parquet, ${OR_NOT}`);
}

/** The options with their defaults in the help only: a resumed run has to know what the user gave. */
const untold = (options: RunOptions): CommandOptions =>
  Object.fromEntries(
    Object.entries(options).map(([name, { default: value, help, ...option }]) => [
      name,
      { ...option, help: value === undefined || typeof value === 'boolean' ? help : `${help} (default: ${value})` },
    ]),
  );

/** `run`: what the service knows of runs. */
export function declareRun(program: Command, add: Add): void {
  const run = program.command('run').description('Manage training runs');
  const columns = Object.entries(RUN_COLUMNS).map(([name, { about }]) => `${name} (${about})`);
  add(run, 'list', () => import('./list.js'))
    .description('List all training runs')
    .option('--limit <n>', 'maximum number of runs (0 = all)', integer(0), 20)
    .option('-c, --columns <names>', `comma list of columns: ${columns.join(', ')}`);
  add(run, 'info', () => import('./info.js'))
    .description('Show details of a specific run')
    .argument('<run-id>');
}
