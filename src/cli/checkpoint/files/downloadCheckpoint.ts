import { checkpointPath } from '../checkpointPaths.js';
import { CliError } from '../../CliError.js';
import { openService } from '../../clients.js';
import { INTERRUPTED, note, type Context } from '../../context.js';
import { explain } from '../../explain.js';
import { waitFor } from '../../terminal/waitFor.js';
import { fetchCheckpoint } from './fetchCheckpoint.js';

const EXPORT_TTL_SECONDS = 3600;
const HINT =
  'Only training (tinker://run-id/weights/name) and external weights (tinker://run-id/external_weights/name) checkpoints can be downloaded.';

/** A path that can be downloaded. @throws CliError for one that cannot */
export function downloadable(path: string): ReturnType<typeof checkpointPath> {
  const parsed = checkpointPath(path);
  if (parsed.checkpointType === 'sampler')
    throw new CliError(`Sampler checkpoints cannot be downloaded: ${path}`, { details: HINT });
  return parsed;
}

/**
 * Downloads a checkpoint into a folder; gives how many bytes it has. A training checkpoint is exported first, to a
 * temporary checkpoint that is deleted afterwards, also after a failure or Ctrl-C.
 */
export async function downloadCheckpoint(context: Context, path: string, folder: string): Promise<number> {
  const { checkpointType } = downloadable(path);
  const abort = new AbortController();
  const interrupted = new CliError('Interrupted', {
    exitCode: INTERRUPTED,
    details: 'Run the same command again to continue, if the service supports it.',
  });
  const listening = context.interrupted$.subscribe(() => abort.abort(interrupted));
  const service = await openService(context, { userMetadata: { created_by: 'tinker-rx checkpoint download' } });
  const { rest } = service;
  const { signal } = abort;
  try {
    if (checkpointType === 'external') return await fetchCheckpoint(context, rest, { path, folder, signal });
    note(context, `Exporting ${path} (this starts a training session on the checkpoint's base model) …`);
    const trainer = await waitFor(
      context,
      'loading the checkpoint',
      service.createTrainingClientFromState(path),
      service.events$,
    );
    const saving = trainer.saveWeightsExternal('download', { ttlSeconds: EXPORT_TTL_SECONDS });
    const { path: exported } = await waitFor(context, 'exporting', saving, service.events$);
    try {
      const onSigned = () => rest.setCheckpointTtlFromTinkerPath(exported, EXPORT_TTL_SECONDS);
      return await fetchCheckpoint(context, rest, { path: exported, folder, signal, onSigned });
    } finally {
      await rest
        .deleteCheckpointFromTinkerPath(exported)
        .then(undefined, (error: unknown) =>
          note(
            context,
            `Warning: could not delete the temporary export ${exported} (${explain(error).message}); it expires in an hour.`,
          ),
        );
    }
  } catch (error) {
    throw signal.aborted ? interrupted : error;
  } finally {
    listening.unsubscribe();
    await service.destroy({ status: signal.aborted ? 'interrupted' : 'success' });
  }
}
