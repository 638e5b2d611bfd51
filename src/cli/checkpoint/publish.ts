import { checkpointPath } from './checkpointPaths.js';
import { withRest } from '../clients.js';
import type { Context } from '../context.js';

/** Says nothing when it is done, as in the Python command. */
export default async function checkpointPublish(context: Context, _: object, path: string): Promise<void> {
  checkpointPath(path);
  await withRest(context, 'publishing', (rest) => rest.publishCheckpointFromTinkerPath(path));
}
