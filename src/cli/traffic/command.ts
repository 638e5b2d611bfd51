import { InvalidArgumentError, Option, type Command } from 'commander';
import { number, type Add } from '../declare.js';

/** `traffic`. */
export function declareTraffic(program: Command, add: Add): void {
  add(program, 'traffic', () => import('./traffic.js'))
    .description('Turn calls that serve --record wrote into a file for train, dpo, grpo or eval')
    .argument('<file>', 'the JSONL file with the calls')
    .addOption(
      new Option('--as <form>', 'what to write')
        .choices(['conversations', 'preferences', 'tasks', 'calls'])
        .default('conversations'),
    )
    .option('--min-rating <rating>', 'only calls that were rated at least this well', number(-Infinity))
    .option('-m, --model <name>', 'only calls of this model, as callers named it')
    .option('--since <date>', 'only calls from this date on', date)
    .option('--until <date>', 'only calls before this date', date)
    .option('-o, --output <file>', 'file to create (default: standard output)')
    .option('--force', 'replace the file');
}

/** @throws InvalidArgumentError */
function date(text: string): string {
  if (Number.isNaN(Date.parse(text))) throw new InvalidArgumentError('Expected a date, such as 2026-11-01.');
  return new Date(text).toISOString();
}
