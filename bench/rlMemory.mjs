// What reinforcement learning holds in memory: 10,000 tasks with 16 rollouts each through a slow trainer (flat), and 100,000 rollouts
// in flight (bytes of each). With fakes for the service: what is measured is what the operators hold.
// Run: npm run build && node --expose-gc bench/rlMemory.mjs      (TASKS=<n>, IN_FLIGHT=<n> for fewer; DIST=<folder> measures another build)
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { lastValueFrom, map, Observable, tap, timer } from 'rxjs';

const TASKS = Number(process.env.TASKS ?? 10_000);
const IN_FLIGHT = Number(process.env.IN_FLIGHT ?? 100_000);
const GROUP = 16;
const FLAT_MB = 10;
const ROLLOUT_BYTES = 12_288;
const dist = resolve(process.env.DIST ?? 'dist');
const { reinforce, rollouts } = await import(pathToFileURL(`${dist}/rl/index.js`));
const { ModelInput, TensorData } = await import(pathToFileURL(`${dist}/wire/index.js`));
if (globalThis.gc === undefined) throw new Error('run it with --expose-gc');

const heapMb = () => {
  globalThis.gc();
  return process.memoryUsage().heapUsed / 1e6;
};
const after = (ms, value) => timer(ms).pipe(map(value));
const sampler = {
  sample: ({ numSamples = 1 }) =>
    after(1, () => ({
      promptCacheHitTokens: 0,
      sequences: Array.from({ length: numSamples }, () => ({
        stopReason: 'stop',
        tokens: new Int32Array(200).fill(7),
        logprobs: new Float32Array(200).fill(-1),
      })),
    })),
};
const trainer = {
  forwardBackward: (data) =>
    after(10, () => ({
      lossFnOutputType: 'fake',
      lossFnOutputs: data.map(({ lossFnInputs }) => ({ logprobs: TensorData.from(lossFnInputs.logprobs, 'float32') })),
      metrics: { 'loss:sum': 1 },
    })),
  optimStep: () => after(10, () => ({})),
  saveWeightsAndGetSamplingClient: () => after(10, () => sampler),
};
const prompt = ModelInput.fromInts([1, 2, 3]);
const agent = (_, policy, { index }) => policy.turn(prompt).pipe(map((turn) => ({ turns: [turn], reward: index % 2 })));

/** Tasks, each with a text of its own. */
const tasks = (count) =>
  new Observable((subscriber) => {
    for (let task = 0; task < count && !subscriber.closed; task++) subscriber.next(task);
    subscriber.complete();
  });

{
  const heaps = [];
  let steps = 0;
  const every = Math.max(1, Math.floor(TASKS / 32 / 16));
  const options = { group: GROUP, groupsPerBatch: 32, maxStepsOffPolicy: 1 };
  const measured = tap(() => {
    if (++steps % every === 0) heaps.push(heapMb());
  });
  await lastValueFrom(tasks(TASKS).pipe(reinforce(trainer, agent, options), measured));
  const rest = heaps.slice(1);
  const growth = Math.max(...rest) - rest[0];
  console.log(
    `${TASKS} tasks of ${GROUP} rollouts, ${steps} steps: heap ${rest.map((mb) => mb.toFixed(0)).join(' ')} MB`,
  );
  console.log(`growth ${growth.toFixed(1)} MB (limit ${FLAT_MB} MB): ${growth <= FLAT_MB ? 'ok' : 'TOO MUCH'}`);
  if (growth > FLAT_MB) process.exitCode = 1;
}
{
  const before = heapMb();
  const options = {
    policy: { sample: () => new Observable(() => {}) },
    group: GROUP,
    concurrency: IN_FLIGHT,
    timeoutMs: Infinity,
  };
  const running = tasks(IN_FLIGHT / GROUP)
    .pipe(rollouts(agent, options))
    .subscribe();
  const bytes = ((heapMb() - before) * 1e6) / IN_FLIGHT;
  running.unsubscribe();
  console.log(
    `${IN_FLIGHT} rollouts in flight: ${bytes.toFixed(0)} bytes each (limit ${ROLLOUT_BYTES}): ${bytes <= ROLLOUT_BYTES ? 'ok' : 'TOO MUCH'}`,
  );
  const left = heapMb() - before;
  console.log(`after unsubscribing ${left.toFixed(1)} MB are left`);
  if (bytes > ROLLOUT_BYTES || left > FLAT_MB) process.exitCode = 1;
}
