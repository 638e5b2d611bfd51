import { withRest } from '../clients.js';
import type { Context } from '../context.js';
import { checkpointPath } from './checkpointPaths.js';

/** Says nothing when it is done, as in the Python command. */
export default (context: Context, _: object, path: string): Promise<void> => change(context, path, true);

export const unpublish = (context: Context, _: object, path: string): Promise<void> => change(context, path, false);

async function change(context: Context, path: string, isPublic: boolean): Promise<void> {
  checkpointPath(path);
  await withRest(context, isPublic ? 'publishing' : 'unpublishing', (rest) =>
    isPublic ? rest.publishCheckpointFromTinkerPath(path) : rest.unpublishCheckpointFromTinkerPath(path),
  );
}
