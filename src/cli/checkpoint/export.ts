import { exportPeft } from '../../adapters/exportPeft.js';
import type { Server } from '../../adapters/servers.js';
import { freeFolder, withAdapter } from './withAdapter.js';
import { note, type Context } from '../context.js';
import { size } from '../output/format.js';
import { printProperties } from '../output/print.js';
import { waitFor } from '../terminal/waitFor.js';

export interface CheckpointExportOptions {
  readonly output: string;
  readonly for: Server;
  readonly base?: string;
  readonly force?: boolean;
}

/** Writes a checkpoint as a PEFT adapter that servers load. */
export default async function checkpointExport(
  context: Context,
  { output, for: server, base, force = false }: CheckpointExportOptions,
  checkpoint: string,
): Promise<void> {
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
