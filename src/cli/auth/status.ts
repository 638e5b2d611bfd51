import { CliError } from '../CliError.js';
import { openService } from '../clients.js';
import type { Context } from '../context.js';
import { printJson } from '../output/print.js';
import { waitFor } from '../terminal/waitFor.js';

export default async function authStatus(context: Context): Promise<void> {
  const { resolveCredential } = await import('../../transport/auth.js');
  const say = (text: string) => context.format === 'table' && context.stdout.write(`${text}\n`);
  try {
    resolveCredential({ isHosted: false, environment: process.env }).stop();
  } catch {
    say('Credentials available: no');
    if (context.format === 'json') printJson(context, { credentials: false, accessible: false });
    throw new CliError('No Tinker credentials are available', {
      details: "Run 'tinker-rx auth login' or set TINKER_API_KEY.",
    });
  }
  say('Credentials available: yes');
  try {
    const service = await openService(context);
    await waitFor(context, 'asking the service', service.getServerCapabilities(), service.events$);
    await service.close();
  } catch (error) {
    say('Tinker accessible: no');
    if (context.format === 'json') printJson(context, { credentials: true, accessible: false });
    throw error;
  }
  say('Tinker accessible: yes');
  if (context.format === 'json') printJson(context, { credentials: true, accessible: true });
}
