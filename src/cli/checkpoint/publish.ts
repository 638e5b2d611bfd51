import { withRest } from '../clients.js';
import type { Context, Run } from '../context.js';
import { checkpointPath } from './checkpointPaths.js';

/** Says nothing when it is done, as in the Python command. */
const publish: Run<[path: string], object> = (context, _, path) => change(context, path, true);
export default publish;

export const unpublish: Run<[path: string], object> = (context, _, path) => change(context, path, false);

async function change(context: Context, path: string, isPublic: boolean): Promise<void> {
  checkpointPath(path);
  await withRest(context, isPublic ? 'publishing' : 'unpublishing', (rest) =>
    isPublic ? rest.publishCheckpointFromTinkerPath(path) : rest.unpublishCheckpointFromTinkerPath(path),
  );
}
