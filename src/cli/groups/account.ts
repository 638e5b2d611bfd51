import type { Command } from 'commander';
import { lazily, type Declaration } from '../declare.js';

/** `auth` and `model`. */
export function declareAccount(program: Command, declaration: Declaration): void {
  const auth = program.command('auth').description('Manage authentication credentials');
  auth
    .command('login')
    .description('Check an API key and store it for this and the Python SDK')
    .action(lazily(declaration, () => import('../commands/authLogin.js')));
  auth
    .command('logout')
    .description('Remove the stored API key')
    .action(lazily(declaration, () => import('../commands/authLogout.js')));
  auth
    .command('status')
    .description('Verify that a credential exists and is accepted')
    .action(lazily(declaration, () => import('../commands/authStatus.js')));
  auth
    .command('whoami')
    .description('Show the user and organization of the active credential')
    .action(lazily(declaration, () => import('../commands/authWhoami.js')));

  const model = program.command('model').description('List available models');
  model
    .command('list')
    .description('List the models your organization can use')
    .argument('[substring]', 'only models whose name contains it, ignoring case')
    .action(lazily(declaration, () => import('../commands/modelList.js')));
}
