/**
 * Run by rlKill.test.ts in a process of its own, to be killed: learns from rewards against a service, or continues where the run
 * in the folder stopped, and says what happens on stdout. Arguments: the service's URL, its key, the folder, steps off policy.
 */
import { firstValueFrom, from, lastValueFrom, tap } from 'rxjs';
import { ServiceClient } from '../../src/client/index.js';
import { reinforce, resumeRl, rlLog, singleTurn } from '../../src/rl/index.js';

const [baseUrl, apiKey, folder, offPolicy] = process.argv.slice(2) as [string, string, string, string];
const service = new ServiceClient({ baseUrl, apiKey, telemetry: false });
const { checkpoint, rl } = await firstValueFrom(resumeRl(folder));
const trainer =
  checkpoint === undefined
    ? await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4, seed: 1 })
    : await service.createTrainingClientFromStateWithOptimizer(checkpoint.statePath);
const agent = singleTurn<string>({
  renderer: await trainer.getRenderer(),
  prompt: (word) => `Say ${word}`,
  // Most answers differ in length, so most groups teach something.
  reward: ({ turn }) => -turn.sequence.tokens.length,
  samplingParams: { maxTokens: 12 },
});
const steps = from(Array.from({ length: 24 }, (_, index) => `word ${index}`)).pipe(
  reinforce(trainer, agent, {
    ...{ group: 4, groupsPerBatch: 2, maxStepsOffPolicy: Number(offPolicy), seed: 7, adam: { learningRate: 1e-3 } },
    ...{ checkpoint: { steps: 2, atEnd: true }, resume: rl },
    onEvent: ({ type }) => process.stdout.write(`${type}\n`),
  }),
  rlLog(folder),
  tap(({ index }) => process.stdout.write(`step ${index}\n`)),
);
await lastValueFrom(steps, { defaultValue: undefined });
await service.close();
