// Rollouts in other processes: they get the sampler as a string, try a task and grade it. What they do is in rlWorker.ts.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { first, fromEvent, map, merge, type Observable, share } from 'rxjs';
import { repeatEpochs } from 'tinker-rx/operators';
import { reinforce, type RolloutHook } from 'tinker-rx/rl';
import { fromArray } from 'tinker-rx/sources';
import { connect } from './connect.js';
import type { Asked, Tried } from './rlWorker.js';

const { service, baseModel, apiKey, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const renderer = await trainer.getRenderer();

// The handle carries no key: each process has its own.
const env = { ...process.env, TINKER_API_KEY: apiKey };
const script = fileURLToPath(new URL('./rlWorker.ts', import.meta.url));
const workers = [1, 2].map(() => fork(script, { env, serialization: 'advanced' }));
const tried = merge(...workers.map((worker) => fromEvent(worker, 'message') as Observable<[Tried]>)).pipe(share());

const agent: RolloutHook<string> = (task, { sampler, step }, { seed, index }) => {
  const prompt = renderer.buildGenerationPrompt([{ role: 'user', content: task }]);
  const asked: Asked = { seed, prompt: prompt.toInts(), handle: sampler.getSamplerHandle() };
  workers[index % workers.length]!.send(asked);
  return tried.pipe(
    first(([{ seed: own }]) => own === seed),
    map(([{ sequence, reward }]) => ({ turns: [{ prompt, sequence, step }], reward })),
  );
};
const tasks = fromArray([1, 2, 3, 4].map((number) => `Say something, number ${number}.`));
const learning = reinforce(trainer, agent, { group: 16, groupsPerBatch: 4, adam: { learningRate: 5e-3 } });
await tasks.pipe(repeatEpochs({ epochs: 8 }), learning).forEach(({ index, reward }) => {
  console.log(`step ${index + 1}: mean reward ${reward.toFixed(2)}`);
});
for (const worker of workers) worker.disconnect();
await close();
