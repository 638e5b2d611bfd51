import type { Command } from 'commander';
import { lazily, type Declaration } from '../declare.js';

/** `auth`. */
export function declareAuth(program: Command, declaration: Declaration): void {
  const auth = program.command('auth').description('Manage authentication credentials');
  auth
    .command('login')
    .description('Check an API key and store it for this and the Python SDK')
    .action(lazily(declaration, () => import('./login.js')));
  auth
    .command('logout')
    .description('Remove the stored API key')
    .action(lazily(declaration, () => import('./logout.js')));
  auth
    .command('status')
    .description('Verify that a credential exists and is accepted')
    .action(lazily(declaration, () => import('./status.js')));
  auth
    .command('whoami')
    .description('Show the user and organization of the active credential')
    .action(lazily(declaration, () => import('./whoami.js')));
}
