import { CliError } from '../CliError.js';
import { withRest } from '../clients.js';
import type { Context } from '../context.js';
import { printJson } from '../print.js';

export default async function authStatus(context: Context): Promise<void> {
  const { resolveCredential } = await import('../../transport/auth.js');
  const say = (text: string) => context.format === 'table' && context.stdout.write(`${text}\n`);
  try {
    resolveCredential({ environment: process.env }).stop();
  } catch {
    say('Credentials available: no');
    if (context.format === 'json') printJson(context, { credentials: false, accessible: false });
    throw new CliError('No Tinker credentials are available', {
      details: "Run 'tinker-rx auth login' or set TINKER_API_KEY.",
    });
  }
  say('Credentials available: yes');
  try {
    // Sessions are the cheapest thing to ask for that needs the key to be good.
    await withRest(context, 'asking the service', (rest) => rest.listSessions({ limit: 1 }));
  } catch (error) {
    say('Tinker accessible: no');
    if (context.format === 'json') printJson(context, { credentials: true, accessible: false });
    throw error;
  }
  say('Tinker accessible: yes');
  if (context.format === 'json') printJson(context, { credentials: true, accessible: true });
}
