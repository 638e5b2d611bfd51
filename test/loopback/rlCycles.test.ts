import { concatMap, delay, from, lastValueFrom, map, throwError, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ServiceClient } from '../../src/client/index.js';
import { LocalTinker } from '../../src/local/index.js';
import {
  type GroupAgent,
  type GroupContext,
  type Policy,
  reinforce,
  type ReinforceOptions,
  type RlStep,
  type Rollout,
  type RolloutHook,
} from '../../src/rl/index.js';
import { ModelInput } from '../../src/wire/modelInput.js';

const STEPS = 50;
const PROMPT = ModelInput.fromInts(Array.from(Buffer.from('lock-step')));
const alone: RolloutHook<number> = () => throwError(() => new Error('made in groups only'));

/** Short samples, and a reward by their place in the group, so that every group teaches something. One request for a group. */
const quick: GroupAgent<number> = Object.assign(alone.bind(undefined), {
  group: (_task: number, policy: Policy, { size }: GroupContext) => {
    const turns = policy.sample({ prompt: PROMPT, numSamples: size, samplingParams: { maxTokens: 4 } });
    return Array.from({ length: size }, (_, index) =>
      turns.pipe(map((all): Rollout => ({ turns: [all[index]!], reward: index % 2 }))),
    );
  },
});
/** The same, as long as a cycle. */
const slow = (clockMs: number): GroupAgent<number> =>
  Object.assign(alone.bind(undefined), {
    group: (task: number, policy: Policy, context: GroupContext) =>
      quick.group(task, policy, context).map((rollout) => from(rollout).pipe(delay(clockMs))),
  });

/** How many cycles each step took, after the first, by the clock of the service. */
function cyclesPerStep(steps: readonly RlStep[]): number {
  const counted = steps.slice(1).map(({ cycles }) => cycles!);
  return counted.reduce((sum, count) => sum + count, 0) / counted.length;
}

describe.concurrent('reinforcement learning on the embedded service with a lock-step clock', () => {
  let local: LocalTinker;
  let service: ServiceClient;

  const run = (agent: GroupAgent<number>, steps: number, options: Partial<ReinforceOptions<number>>) => {
    const tasks = from(Array.from({ length: 2 * steps }, (_, index) => index));
    const created = service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4, seed: 1 });
    return lastValueFrom(
      created.pipe(
        concatMap((trainer) => tasks.pipe(reinforce(trainer, agent, { group: 2, groupsPerBatch: 2, ...options }))),
        toArray(),
      ),
    );
  };
  // All at once: models take part in the same cycles.
  const all = (steps: number) =>
    Promise.all([
      run(quick, steps, {}),
      run(quick, steps, { minibatches: 2 }),
      run(quick, steps, { maxStepsOffPolicy: 1 }),
    ]);

  beforeAll(async () => {
    local = await LocalTinker.start();
    service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
    // The first steps compile.
    await all(2);
    const startedMs = performance.now();
    await all(5);
    // Long beside what a step takes here, also on a busy machine: what is counted is who was ready when a cycle began.
    local.dials.clockMs = Math.min(600, Math.max(150, Math.ceil(performance.now() - startedMs)));
  }, 60_000);
  afterAll(async () => {
    await service.close();
    await local.close();
  });

  it(
    'takes one cycle a step over 50 steps: synchronously, in streamed minibatches, asynchronously',
    { timeout: 180_000 },
    async () => {
      const runs = await all(STEPS);
      for (const steps of runs) expect(steps).toHaveLength(STEPS);
      const cycles = runs.map(cyclesPerStep);
      expect(Math.min(...cycles)).toBeGreaterThanOrEqual(0.95);
      expect(Math.max(...cycles), cycles.join(', ')).toBeLessThanOrEqual(1.05);
    },
  );

  it(
    'makes one and a half times the steps asynchronously where sampling takes as long as training',
    { timeout: 120_000 },
    async () => {
      const agent = slow(local.dials.clockMs);
      const [synchronous, asynchronous] = await Promise.all([
        run(agent, 16, {}),
        run(agent, 16, { maxStepsOffPolicy: 2 }),
      ]);
      const ages = asynchronous.map(({ metrics }) => metrics['policy/age_max']!);
      expect(Math.max(...ages)).toBeLessThanOrEqual(2);
      expect(cyclesPerStep(synchronous) / cyclesPerStep(asynchronous)).toBeGreaterThanOrEqual(1.5);
    },
  );
});
