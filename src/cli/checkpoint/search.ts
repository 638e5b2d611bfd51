import type { CheckpointSearch } from '../../client/RestClient.js';
import type { PageRequest } from '../../sources/fromPages.js';
import type { CheckpointSearchCursor } from '../../wire/rest.js';
import { collect, listTitle, ownerOf } from '../collect.js';
import type { Context } from '../context.js';
import { size, when } from '../output/format.js';
import { checkpointJson } from '../output/jsonForm.js';
import { printTable } from '../output/print.js';

export interface CheckpointSearchOptions {
  readonly projectId?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly type?: 'training' | 'sampler' | 'external';
  readonly owner: string;
  readonly baseModel?: readonly string[];
  readonly limit: number;
}

export default async function checkpointSearch(context: Context, options: CheckpointSearchOptions): Promise<void> {
  const search = queryOf(options);
  const found = await collect(context, {
    unit: 'checkpoint',
    limit: options.limit,
    pageSize: 200,
    page: (rest, { limit, cursor }: PageRequest<CheckpointSearchCursor>) =>
      rest.searchCheckpoints({ ...search, limit, ...(cursor === undefined ? {} : { cursor }) }),
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

function queryOf({ projectId, metadata, type, owner, baseModel }: CheckpointSearchOptions): CheckpointSearch {
  return {
    ...(projectId === undefined ? {} : { projectIds: [...projectId] }),
    ...(metadata === undefined ? {} : { userMetadata: metadata }),
    ...(type === undefined ? {} : { checkpointType: type }),
    ...(baseModel === undefined ? {} : { baseModels: [...baseModel] }),
    owner: ownerOf(owner),
  };
}
