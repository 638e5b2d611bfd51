/**
 * Run by streamsKill.test.ts in a process of its own, to be killed: trains on a file against a service, or goes on where
 * the run in the folder stopped, and says each step on stdout. Arguments: the service's URL, its key, the data, the folder.
 */
import { firstValueFrom, lastValueFrom, map, tap } from 'rxjs';
import { ServiceClient } from '../../src/client/index.js';
import {
  batch,
  checkpointEvery,
  continueFrom,
  linear,
  repeatEpochs,
  shuffle,
  train,
} from '../../src/operators/index.js';
import { metricsLog } from '../../src/sinks/index.js';
import { fromJsonl, resumeFrom } from '../../src/sources/index.js';
import type { Datum } from '../../src/wire/datum.js';
import { ModelInput } from '../../src/wire/modelInput.js';

const [baseUrl, apiKey, data, folder] = process.argv.slice(2) as [string, string, string, string];
const service = new ServiceClient({ baseUrl, apiKey, telemetry: false });
const resume = await firstValueFrom(resumeFrom(folder));
const trainer =
  resume.checkpoint === undefined
    ? await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4, seed: 1 })
    : await service.createTrainingClientFromStateWithOptimizer(resume.checkpoint.statePath);

const toDatum = (text: string): Datum => {
  const tokens = Array.from(Buffer.from(text));
  return {
    modelInput: ModelInput.fromInts(tokens.slice(0, -1)),
    lossFnInputs: { target_tokens: tokens.slice(1), weights: tokens.slice(1).map(() => 1) },
  };
};
const steps = fromJsonl<string>(data).pipe(
  map(toDatum),
  repeatEpochs({ epochs: 2, each: (rows, epoch) => rows.pipe(shuffle({ window: 8, seed: epoch })) }),
  batch({ size: 2 }),
  continueFrom(resume),
  checkpointEvery({ steps: 3, atEnd: true }),
  train(trainer, { loss: 'cross_entropy', adam: { learningRate: linear(1e-2, { steps: 30 }) }, ahead: 2 }),
  metricsLog(folder),
  tap(({ index }) => process.stdout.write(`step ${index}\n`)),
);
await lastValueFrom(steps, { defaultValue: undefined });
await service.close();
