import type { Command } from 'commander';
import { integer, lazily, type Declaration } from '../declare.js';
import { RUN_COLUMNS } from './runColumns.js';

/** `run`. */
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
