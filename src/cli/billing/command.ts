import type { Command } from 'commander';
import type { Add } from '../declare.js';

/** `billing`. */
export function declareBilling(program: Command, add: Add): void {
  const billing = program.command('billing').description('View billing usage');
  add(billing, 'usage', () => import('./usage.js'))
    .description('Show hourly usage of your organization; estimates, not invoices')
    .argument('<starting-on>', 'full UTC hour, for instance 2026-07-13T00:00:00Z')
    .argument('<ending-before>', 'full UTC hour, at most 14 days later')
    .option('--csv <path>', "write the rows as CSV instead ('-' for standard output)")
    .option('--sessions-csv <path>', "write sessions and their metadata as CSV too ('-' for standard output)");
  add(billing, 'reconcile', () => import('./reconcile.js'))
    .description('Compare what a run counted with what the service billed for its sessions')
    .argument('<folder>', 'folder of a run, with its cost.jsonl');
  add(billing, 'checkpoint-storage', () => import('./checkpointStorage.js'))
    .description('Show current checkpoint storage and its projected monthly cost')
    .option('--project-id <id>', 'only storage in this project')
    .option('--csv <path>', "write the rows as CSV instead ('-' for standard output)");
}
