import type { Command } from 'commander';
import { lazily, type Declaration } from '../declare.js';

/** `model`. */
export function declareModel(program: Command, declaration: Declaration): void {
  const model = program.command('model').description('List available models');
  model
    .command('list')
    .description('List the models your organization can use')
    .argument('[substring]', 'only models whose name contains it, ignoring case')
    .action(lazily(declaration, () => import('./list.js')));
}
