import type { RestClient } from '../../client/RestClient.js';
import type { Checkpoint } from '../../wire/rest.js';
import { parseTinkerPath, type TinkerPath } from '../../wire/tinkerPath.js';
import { CliError } from '../CliError.js';

/** A checkpoint's path as the user wrote it, taken apart. @throws CliError saying what it should look like */
export function checkpointPath(path: string): TinkerPath {
  try {
    return parseTinkerPath(path);
  } catch {
    throw new CliError(`Invalid checkpoint path: ${path}`, {
      details: 'Checkpoint paths look like tinker://run-id/weights/0001',
    });
  }
}

/** What the service knows of a checkpoint. */
export async function findCheckpoint(rest: RestClient, path: string): Promise<Checkpoint> {
  const { checkpoints } = await rest.listCheckpoints(checkpointPath(path).trainingRunId);
  const found = checkpoints.find(({ tinkerPath }) => tinkerPath === path);
  if (found === undefined) throw new CliError(`Checkpoint not found: ${path}`);
  return found;
}
