import type { Command } from 'commander';
import type { Add } from '../declare.js';

/** `model`. */
export function declareModel(program: Command, add: Add): void {
  const model = program.command('model').description('List available models');
  add(model, 'list', () => import('./list.js'))
    .description('List the models your organization can use')
    .argument('[substring]', 'only models whose name contains it, ignoring case');
}
