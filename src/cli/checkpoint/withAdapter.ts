import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CliError } from '../CliError.js';
import { withRest } from '../clients.js';
import type { Context } from '../context.js';
import { isRun, modelOf } from '../modelOf.js';
import { downloadable, downloadCheckpoint } from './files/downloadCheckpoint.js';
import { isFolder, repositoryOf } from '../../adapters/baseModel.js';
import { readAdapterConfig } from '../../adapters/exportPeft.js';

export interface AdapterAtHand {
  /** Folder with the adapter as the service exports it. */
  readonly folder: string;
  /** Folder or repository of the base model: as asked for, or as the service or the adapter names it. */
  readonly base: string;
  /** The name of the base model, for those who load the adapter elsewhere. */
  readonly baseName: string;
}

/** Runs work with the adapter of a checkpoint: one that was downloaded into a folder, or one that is downloaded for it and removed afterwards. */
export async function withAdapter<T>(
  context: Context,
  checkpoint: string,
  base: string | undefined,
  work: (adapter: AdapterAtHand) => Promise<T>,
): Promise<T> {
  if (isFolder(checkpoint) && !isRun(checkpoint)) {
    const trainedFrom = (await readAdapterConfig(checkpoint)).base_model_name_or_path;
    const named = base ?? trainedFrom;
    if (named === undefined)
      throw new CliError('The adapter does not say which model it was trained from', { details: 'Say it: --base.' });
    const found = isFolder(named) || base?.endsWith('.gguf') === true ? named : repositoryOf(named);
    return work({ folder: checkpoint, base: found, baseName: trainedFrom ?? found });
  }
  const { name: path } = await modelOf(checkpoint, 'statePath');
  downloadable(path);
  const info = await withRest(context, 'asking for the weights', (rest) => rest.getWeightsInfoByTinkerPath(path));
  const folder = await mkdtemp(join(tmpdir(), 'tinker-rx-adapter-'));
  try {
    const weights = join(folder, 'weights');
    await downloadCheckpoint(context, path, weights);
    const baseName = repositoryOf(info.baseModel);
    return await work({ folder: weights, base: base ?? baseName, baseName });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A folder to be made. @throws CliError if there is one already and it is not to be replaced */
export async function freeFolder(folder: string, force: boolean): Promise<void> {
  if (!isFolder(folder)) return;
  if (!force)
    throw new CliError(`Target directory already exists: ${folder}`, { details: 'Use --force to replace it.' });
  await rm(folder, { recursive: true });
}
