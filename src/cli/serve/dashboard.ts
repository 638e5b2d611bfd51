import { existsSync } from 'node:fs';
import { firstValueFrom } from 'rxjs';
import { CliError } from '../CliError.js';
import { note, type Context } from '../context.js';
import type { Chosen } from '../declare.js';
import type { DASHBOARD } from './command.js';
import { printJson } from '../output/print.js';

/** Serves the page over logged runs, as they are and as they grow, until it is interrupted. */
export default async function dashboard(
  context: Context,
  { log = [], evals = [], port, host }: Chosen<typeof DASHBOARD>,
): Promise<void> {
  if (log.length + evals.length === 0)
    throw new CliError('Nothing to show', { details: 'Give --log <folder> or --evals <folder>.', exitCode: 2 });
  for (const folder of [...log, ...evals]) if (!existsSync(folder)) throw new CliError(`${folder}: no such folder`);
  const { serveDashboard } = await import('../../dashboard/index.js');
  const interrupted = firstValueFrom(context.interrupted$);
  const served = await serveDashboard({ log, evals }, { port, ...(host === undefined ? {} : { host }) });
  if (context.format === 'json') printJson(context, { url: served.url });
  else context.stdout.write(`${served.url}\n`);
  if (evals.length > 0) note(context, `Evaluations side by side: ${served.url.replace('/?', '/compare?')}`);
  note(context, 'Open this address in a browser; whoever has it sees the page. Ctrl-C ends it.');
  await interrupted;
  await served.close();
}
