import { mergeModel } from '../../adapters/mergeModel.js';
import { freeFolder, withAdapter } from './withAdapter.js';
import { note, type Context } from '../context.js';
import type { Chosen } from '../declare.js';
import type { MERGE } from './command.js';
import { count, size } from '../output/format.js';
import { printProperties } from '../output/print.js';
import { waitFor } from '../terminal/waitFor.js';

/** Writes the base model with a checkpoint added to its weights. */
export default async function checkpointMerge(
  context: Context,
  { output, base, force = false }: Chosen<typeof MERGE>,
  checkpoint: string,
): Promise<void> {
  await freeFolder(output, force);
  const { named, result } = await withAdapter(context, checkpoint, base, async (adapter) => {
    let label = 'reading the base model';
    const onShard = (shard: string, number: number, of: number) => {
      label = `merging ${shard} (${number} of ${of})`;
    };
    const merging = mergeModel({ adapter: adapter.folder, base: adapter.base, output, onShard });
    return { named: adapter.base, result: await waitFor(context, () => label, merging) };
  });
  const { shards, bytes, changed, untied } = result;
  if (untied)
    note(context, 'The output matrix was shared with the embeddings. It is a separate tensor now, as it was trained.');
  printProperties(
    context,
    [
      ['Checkpoint Path', checkpoint],
      ['Base Model', named],
      ['Changed', count(changed, 'tensor')],
      ['Files', String(shards)],
      ['Total Size', size(bytes)],
      ['Written to', output],
    ],
    () => ({
      checkpoint_path: checkpoint,
      base_model: named,
      changed_tensors: changed,
      files: shards,
      file_size_bytes: bytes,
      destination: output,
    }),
  );
}
