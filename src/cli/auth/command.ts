import type { Command } from 'commander';
import type { Add } from '../declare.js';

/** `auth`. */
export function declareAuth(program: Command, add: Add): void {
  const auth = program.command('auth').description('Manage authentication credentials');
  add(auth, 'login', () => import('./login.js')).description(
    'Check an API key and store it for this and the Python SDK',
  );
  add(auth, 'logout', () => import('./logout.js')).description('Remove the stored API key');
  add(auth, 'status', () => import('./status.js')).description('Verify that a credential exists and is accepted');
  add(auth, 'whoami', () => import('./whoami.js')).description(
    'Show the user and organization of the active credential',
  );
}
