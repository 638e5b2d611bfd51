import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CliError } from '../CliError.js';
import type { Context } from '../context.js';
import { downloadable, downloadCheckpoint } from './files/downloadCheckpoint.js';
import { modelOf } from '../modelOf.js';
import { size } from '../output/format.js';
import { printProperties } from '../output/print.js';

export default async function checkpointDownload(
  context: Context,
  { output = '.', force = false }: { readonly output?: string; readonly force?: boolean },
  checkpoint: string,
): Promise<void> {
  const { name: path } = await modelOf(checkpoint, 'statePath');
  downloadable(path);
  // A colon is not allowed in a name on Windows.
  const folder = join(output, path.slice('tinker://'.length).replace(/[/:]/g, '_'));
  if (existsSync(folder)) {
    if (!force)
      throw new CliError(`Target directory already exists: ${folder}`, {
        details: 'Use --force to overwrite or choose a different output directory.',
      });
    await rm(folder, { recursive: true });
  }
  if (force) await rm(`${folder}.partial`, { recursive: true, force: true });
  await mkdir(output, { recursive: true });
  const bytes = await downloadCheckpoint(context, path, folder);
  printProperties(
    context,
    [
      ['Checkpoint Path', path],
      ['Total Size', size(bytes)],
      ['Downloaded to', folder],
    ],
    () => ({ checkpoint_path: path, destination: folder, file_size_bytes: bytes }),
  );
}
