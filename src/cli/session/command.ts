import type { Command } from 'commander';
import { integer, pairs, several, type Add, type CommandOptions } from '../declare.js';

// prettier-ignore
export const SEARCH = {
  id: { flag: '--id <text>', help: 'session ID' },
  name: { flag: '--name <text>', help: 'display name' },
  projectId: { flag: '--project-id <id>', parse: several, help: 'project (may be repeated)' },
  metadata: { flag: '--metadata <name=value>', parse: pairs, help: 'user metadata (may be repeated)' },
  owner: { flag: '--owner <who>', default: 'own', help: 'own, accessible, or the URN of a user' },
  status: { flag: '--status <status>', choices: ['active', 'failed', 'cancelled', 'client_finished'], help: 'filter by status' },
  limit: { flag: '--limit <n>', parse: integer(0), default: 20, help: 'maximum number of sessions (0 = all)' },
} as const satisfies CommandOptions;

/** `session`. */
export function declareSession(program: Command, add: Add): void {
  const session = program.command('session').description('Manage sessions');
  add(session, 'list', () => import('./list.js'))
    .description('List the newest sessions')
    .option('--limit <n>', 'maximum number of sessions (0 = all)', integer(0), 20);
  add(session, 'info', () => import('./info.js'))
    .description('Show the runs and samplers of a session')
    .argument('<session-id>');
  add(session, 'search', () => import('./search.js'), SEARCH).description('Search sessions, newest first');
  add(session, 'export-trace', () => import('./exportTrace.js'))
    .description("Export a session's timeline, to be opened in https://ui.perfetto.dev")
    .argument('<session-id>')
    .option('-o, --output <file>', 'file to write (default: ./<session-id>.pftrace)')
    .option('--url-only', 'print the signed download URL instead');
}
