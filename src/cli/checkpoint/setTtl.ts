import { checkpointPath } from './checkpointPaths.js';
import { CliError } from '../CliError.js';
import { withRest } from '../clients.js';
import type { Context } from '../context.js';

export default async function checkpointSetTtl(
  context: Context,
  { ttl, remove }: { readonly ttl?: number; readonly remove?: boolean },
  path: string,
): Promise<void> {
  checkpointPath(path);
  if ((ttl === undefined) === (remove !== true))
    throw new CliError(
      ttl === undefined ? 'Must specify either --ttl <seconds> or --remove' : 'Cannot specify both --ttl and --remove',
      { details: 'Use --ttl to set an expiration or --remove to clear it', exitCode: 2 },
    );
  await withRest(context, 'setting the expiration', (rest) => rest.setCheckpointTtlFromTinkerPath(path, ttl ?? null));
}
