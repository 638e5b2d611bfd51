import type { PageRequest } from '../../sources/fromPages.js';
import type { CheckpointSearchCursor } from '../../wire/rest.js';
import { withoutUndefined } from '../../wire/record.js';
import { collect, listTitle, ownerOf } from '../collect.js';
import type { Context } from '../context.js';
import type { Chosen } from '../declare.js';
import type { SEARCH } from './command.js';
import { size, when } from '../output/format.js';
import { checkpointJson } from '../output/jsonForm.js';
import { printTable } from '../output/print.js';

export default async function checkpointSearch(context: Context, options: Chosen<typeof SEARCH>): Promise<void> {
  const { projectId, metadata, type, owner, baseModel } = options;
  const search = withoutUndefined({
    ...{ projectIds: projectId && [...projectId], userMetadata: metadata, checkpointType: type },
    ...{ baseModels: baseModel && [...baseModel], owner: ownerOf(owner) },
  });
  const found = await collect(context, {
    unit: 'checkpoint',
    limit: options.limit,
    pageSize: 200,
    page: (rest, { limit, cursor }: PageRequest<CheckpointSearchCursor>) =>
      rest.searchCheckpoints(withoutUndefined({ ...search, limit, cursor })),
    items: ({ checkpoints }) => checkpoints,
    nextCursor: ({ nextCursor }) => nextCursor,
  });
  const { items } = found;
  printTable(
    context,
    {
      title: listTitle(found, 'checkpoint'),
      columns: ['Checkpoint ID', 'Type', 'Base model', 'Size', 'Created', 'Path'],
      lastBelow: true,
      rows: items.map((checkpoint) => [
        checkpoint.checkpointId,
        checkpoint.checkpointType,
        checkpoint.baseModel ?? 'N/A',
        checkpoint.sizeBytes === undefined ? 'N/A' : size(checkpoint.sizeBytes),
        when(checkpoint.time, context.now()),
        checkpoint.tinkerPath,
      ]),
    },
    () => ({ checkpoints: items.map(checkpointJson) }),
  );
}
