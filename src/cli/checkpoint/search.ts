import { firstValueFrom, take, toArray } from 'rxjs';
import type { CheckpointSearch } from '../../client/RestClient.js';
import type { Checkpoint, CheckpointSearchCursor, CheckpointSearchResponse } from '../../wire/rest.js';
import { withRest } from '../clients.js';
import { listTitle } from '../collect.js';
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

const PAGE = 200;

export default async function checkpointSearch(context: Context, options: CheckpointSearchOptions): Promise<void> {
  const { fromPages } = await import('../../sources/fromPages.js');
  const { limit } = options;
  const search = queryOf(options);
  const items = await withRest(context, 'searching', (rest) =>
    firstValueFrom(
      fromPages<CheckpointSearchResponse, Checkpoint, CheckpointSearchCursor>(
        ({ cursor, limit }) =>
          rest.searchCheckpoints({ ...search, limit, ...(cursor === undefined ? {} : { cursor }) }),
        {
          limit: limit === 0 ? PAGE : Math.min(PAGE, limit),
          items: ({ checkpoints }) => checkpoints,
          nextCursor: ({ nextCursor }) => nextCursor,
        },
      ).pipe(take(limit === 0 ? Infinity : limit), toArray()),
    ),
  );
  printTable(
    context,
    {
      title: listTitle({ items, total: undefined }, 'checkpoint'),
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
    owner: owner === 'own' || owner === 'accessible' ? { type: owner } : { type: 'user', ownerUrns: [owner] },
  };
}
