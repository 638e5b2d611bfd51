import { existsSync } from 'node:fs';
import { exportGguf } from '../../adapters/exportGguf.js';
import { exportPeft } from '../../adapters/exportPeft.js';
import type { GgufType } from '../../adapters/ggufFile.js';
import { freeFolder, withAdapter } from './withAdapter.js';
import { CliError } from '../CliError.js';
import { note, type Context } from '../context.js';
import type { Chosen } from '../declare.js';
import type { EXPORT } from './command.js';
import { count, size } from '../output/format.js';
import { printProperties } from '../output/print.js';
import { waitFor } from '../terminal/waitFor.js';

type CheckpointExportOptions = Chosen<typeof EXPORT>;

/** Writes a checkpoint as a PEFT adapter that servers load. */
export default async function checkpointExport(
  context: Context,
  options: CheckpointExportOptions,
  checkpoint: string,
): Promise<void> {
  const { output, for: server, base, force = false, gguf } = options;
  if (gguf !== undefined) return exportAsGguf(context, { ...options, gguf }, checkpoint);
  await freeFolder(output, force);
  const { named, result } = await withAdapter(context, checkpoint, base, async (adapter) => ({
    named: adapter.baseName,
    result: await waitFor(
      context,
      'writing the adapter',
      exportPeft({ adapter: adapter.folder, output, server, base: adapter.base, baseName: adapter.baseName }),
    ),
  }));
  const { bytes, rank, targetModules, notes } = result;
  for (const one of notes) note(context, one);
  printProperties(
    context,
    [
      ['Checkpoint Path', checkpoint],
      ['Base Model', named],
      ['Rank', String(rank)],
      ['Modules', targetModules.join(', ')],
      ['Total Size', size(bytes)],
      ['Written to', output],
    ],
    () => ({
      checkpoint_path: checkpoint,
      base_model: named,
      rank,
      target_modules: targetModules,
      file_size_bytes: bytes,
      destination: output,
      notes,
    }),
  );
}

async function exportAsGguf(
  context: Context,
  { output, base, force = false, gguf }: CheckpointExportOptions & { readonly gguf: GgufType },
  checkpoint: string,
): Promise<void> {
  if (existsSync(output) && !force)
    throw new CliError(`Target file already exists: ${output}`, { details: 'Use --force to replace it.' });
  const { named, result } = await withAdapter(context, checkpoint, base, async (adapter) => {
    let label = 'reading the base model';
    const onProgress = (what: string) => {
      label = what;
    };
    const writing = exportGguf({ adapter: adapter.folder, base: adapter.base, output, type: gguf, onProgress });
    return { named: adapter.baseName, result: await waitFor(context, () => label, writing) };
  });
  const { bytes, changed } = result;
  printProperties(
    context,
    [
      ['Checkpoint Path', checkpoint],
      ['Base Model', named],
      ['Type', gguf],
      ['Changed', count(changed, 'tensor')],
      ['Total Size', size(bytes)],
      ['Written to', output],
    ],
    () => ({
      checkpoint_path: checkpoint,
      base_model: named,
      type: gguf,
      changed_tensors: changed,
      file_size_bytes: bytes,
      destination: output,
    }),
  );
}
