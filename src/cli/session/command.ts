import { Option, type Command } from 'commander';
import { integer, lazily, pairs, several, type Declaration } from '../declare.js';

/** `session`. */
export function declareSession(program: Command, declaration: Declaration): void {
  const session = program.command('session').description('Manage sessions');
  session
    .command('list')
    .description('List the newest sessions')
    .option('--limit <n>', 'maximum number of sessions (0 = all)', integer(0), 20)
    .action(lazily(declaration, () => import('./list.js')));
  session
    .command('info')
    .description('Show the runs and samplers of a session')
    .argument('<session-id>')
    .action(lazily(declaration, () => import('./info.js')));
  session
    .command('search')
    .description('Search sessions, newest first')
    .option('--id <text>', 'session ID')
    .option('--name <text>', 'display name')
    .option('--project-id <id>', 'project (may be repeated)', several)
    .option('--metadata <name=value>', 'user metadata (may be repeated)', pairs)
    .option('--owner <who>', 'own, accessible, or the URN of a user', 'own')
    .addOption(
      new Option('--status <status>', 'filter by status').choices(['active', 'failed', 'cancelled', 'client_finished']),
    )
    .option('--limit <n>', 'maximum number of sessions (0 = all)', integer(0), 20)
    .action(lazily(declaration, () => import('./search.js')));
  session
    .command('export-trace')
    .description("Export a session's timeline, to be opened in https://ui.perfetto.dev")
    .argument('<session-id>')
    .option('-o, --output <file>', 'file to write (default: ./<session-id>.pftrace)')
    .option('--url-only', 'print the signed download URL instead')
    .action(lazily(declaration, () => import('./exportTrace.js')));
}
