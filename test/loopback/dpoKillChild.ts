/**
 * Run by dpoKill.test.ts in a process of its own, to be killed: trains on preferences against a service, from weights that are
 * trained a little already, or goes on where the run in the folder stopped. Says each step on stdout. Arguments: the service's URL,
 * its key, the data, the folder, the path of the weights to start from.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { firstValueFrom, lastValueFrom, map, tap } from 'rxjs';
import { ServiceClient } from '../../src/client/index.js';
import { dpo } from '../../src/losses/index.js';
import { batch, checkpointEvery, continueFrom, linear, toPairs, trainPreferences } from '../../src/operators/index.js';
import { metricsLog } from '../../src/sinks/index.js';
import { fromPreferences, resumeFrom } from '../../src/sources/index.js';

const [baseUrl, apiKey, data, folder, start] = process.argv.slice(2) as [string, string, string, string, string];
const service = new ServiceClient({ baseUrl, apiKey, telemetry: false });
const resume = await firstValueFrom(resumeFrom(folder));
const trainer =
  resume.checkpoint === undefined
    ? await service.createTrainingClientFromState(start)
    : await service.createTrainingClientFromStateWithOptimizer(resume.checkpoint.statePath);

// The weights of the start are the reference, in this process and in those that go on after it.
const note = join(folder, 'reference');
if (!existsSync(note)) {
  mkdirSync(folder, { recursive: true });
  const { path } = await trainer.saveWeightsForSampler('reference');
  writeFileSync(`${note}.new`, path);
  renameSync(`${note}.new`, note);
}
const reference = await service.createSamplingClient({ modelPath: readFileSync(note, 'utf8') });

const steps = fromPreferences(data).pipe(
  toPairs(await trainer.getRenderer()),
  batch({ size: 2 }),
  map((pairs) => pairs.flat()),
  continueFrom(resume),
  checkpointEvery({ steps: 3, atEnd: true }),
  trainPreferences(trainer, {
    loss: dpo({ beta: 0.5 }),
    reference,
    adam: { learningRate: linear(1e-2, { steps: 30 }) },
  }),
  metricsLog(folder),
  tap(({ index }) => process.stdout.write(`step ${index}\n`)),
);
await lastValueFrom(steps, { defaultValue: undefined });
await service.close();
