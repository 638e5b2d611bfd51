import { checkpointPath, findCheckpoint } from './checkpointPaths.js';
import { withRest } from '../clients.js';
import type { Context } from '../context.js';
import { loraStatus, size, when, yesNo } from '../output/format.js';
import { checkpointJson } from '../output/jsonForm.js';
import { printProperties } from '../output/print.js';

export default async function checkpointInfo(context: Context, _: object, path: string): Promise<void> {
  const { trainingRunId } = checkpointPath(path);
  const [checkpoint, run] = await withRest(context, 'asking for the checkpoint', (rest) =>
    Promise.all([findCheckpoint(rest, path), rest.getTrainingRun(trainingRunId)]),
  );
  const nowMs = context.now();
  printProperties(
    context,
    [
      ['Checkpoint ID', checkpoint.checkpointId],
      ['Type', checkpoint.checkpointType],
      ['Tinker Path', checkpoint.tinkerPath],
      ['Size', checkpoint.sizeBytes === undefined ? undefined : size(checkpoint.sizeBytes)],
      ['Public', yesNo(checkpoint.public)],
      ['Created', when(checkpoint.time, nowMs)],
      ['Expires', checkpoint.expiresAt === undefined ? 'Never' : when(checkpoint.expiresAt, nowMs)],
      ['Training Run ID', trainingRunId],
      ['LoRA', loraStatus(run)],
    ],
    () => ({ ...checkpointJson(checkpoint), is_lora: run.isLora, lora_rank: run.loraRank ?? null }),
  );
}
