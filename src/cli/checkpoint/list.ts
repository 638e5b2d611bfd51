import type { Checkpoint } from '../../wire/rest.js';
import { withRest } from '../clients.js';
import { collect, listTitle, type Collected } from '../collect.js';
import type { Context } from '../context.js';
import { size, when, yesNo } from '../output/format.js';
import { checkpointJson } from '../output/jsonForm.js';
import { printTable } from '../output/print.js';

export default async function checkpointList(
  context: Context,
  { runId, limit }: { readonly runId?: string; readonly limit: number },
): Promise<void> {
  const found = runId === undefined ? await ofAllRuns(context, limit) : await ofRun(context, runId);
  const nowMs = context.now();
  printTable(
    context,
    {
      title: listTitle(found, 'checkpoint', runId === undefined ? '' : ` for run ${runId}`),
      columns: ['Checkpoint ID', 'Type', 'Size', 'Public', 'Created', 'Expires', 'Path'],
      lastBelow: true,
      rows: found.items.map((checkpoint) => [
        checkpoint.checkpointId,
        checkpoint.checkpointType,
        checkpoint.sizeBytes === undefined ? 'N/A' : size(checkpoint.sizeBytes),
        yesNo(checkpoint.public),
        when(checkpoint.time, nowMs),
        checkpoint.expiresAt === undefined ? 'Never' : when(checkpoint.expiresAt, nowMs),
        checkpoint.tinkerPath,
      ]),
    },
    () => ({
      ...(runId === undefined ? {} : { run_id: runId }),
      checkpoints: found.items.map(checkpointJson),
    }),
  );
}

/** The service pages the checkpoints of all runs, but not those of one. */
async function ofRun(context: Context, runId: string): Promise<Collected<Checkpoint>> {
  const { checkpoints } = await withRest(context, 'asking for checkpoints', (rest) => rest.listCheckpoints(runId));
  return { items: checkpoints, total: undefined };
}

const ofAllRuns = (context: Context, limit: number): Promise<Collected<Checkpoint>> =>
  collect(context, {
    unit: 'checkpoint',
    limit,
    pageSize: 1000,
    page: (rest, asked) => rest.listUserCheckpoints(asked),
    items: ({ checkpoints }) => checkpoints,
    total: ({ cursor, checkpoints }) => cursor?.totalCount ?? checkpoints.length,
  });
