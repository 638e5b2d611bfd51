import type { Checkpoint } from '../../wire/rest.js';
import { withRest } from '../clients.js';
import type { Context } from '../context.js';
import { loraStatus, when } from '../output/format.js';
import { runJson } from '../output/jsonForm.js';
import { printProperties } from '../output/print.js';

export default async function runInfo(context: Context, _: object, runId: string): Promise<void> {
  const run = await withRest(context, 'asking for the run', (rest) => rest.getTrainingRun(runId));
  const saved = (name: string, checkpoint?: Checkpoint): [string, string | undefined][] => [
    [name, checkpoint?.checkpointId],
    ['  - Time', checkpoint && when(checkpoint.time, context.now())],
    ['  - Path', checkpoint?.tinkerPath],
  ];
  const metadata = Object.entries(run.userMetadata ?? {});
  printProperties(
    context,
    [
      ['Run ID', run.trainingRunId],
      ['Base Model', run.baseModel],
      ['Owner', run.modelOwner],
      ['LoRA', loraStatus(run)],
      ['Last Update', when(run.lastRequestTime, context.now())],
      ['Status', run.corrupted ? 'Failed' : 'OK'],
      ...saved('Last Training Checkpoint', run.lastCheckpoint),
      ...saved('Last Sampler Checkpoint', run.lastSamplerCheckpoint),
      ['Metadata', metadata.length === 0 ? undefined : ''],
      ...metadata.map(([key, value]) => [`  - ${key}`, value] as const),
    ],
    () => runJson(run),
  );
}
