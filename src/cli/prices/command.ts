import type { Command } from 'commander';
import type { Add } from '../declare.js';

/** `prices`. */
export function declarePrices(program: Command, add: Add): void {
  const prices = program.command('prices').description('Keep the list of prices up to date');
  add(prices, 'update', () => import('./update.js'))
    .description("Read the service's public price list, keep it for later commands, and show what changed")
    .option('--url <url>', "address of the list (default: models.json of the service's documentation)");
}
