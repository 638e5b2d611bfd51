import { from, lastValueFrom, map, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ServiceClient } from '../../src/client/index.js';
import { LocalTinker } from '../../src/local/index.js';
import { reinforce, type RlEvent, type Rollout, type RolloutHook } from '../../src/rl/index.js';
import { ModelInput } from '../../src/wire/modelInput.js';
import { hurry } from './support/hurry.js';

const STEPS = 10;
const SEEDS = Array.from({ length: 20 }, (_, index) => index + 1);
const PROMPT = ModelInput.fromInts(Array.from(Buffer.from('faults')));

/** A short sample, and a reward by its place in the group, so that every group teaches something. */
const quick: RolloutHook<number> = (_task, policy, { index }) =>
  policy.turn(PROMPT, { maxTokens: 2 }).pipe(map((turn): Rollout => ({ turns: [turn], reward: index % 2 })));

describe('asynchronous reinforcement learning where 30 % of all requests fail', () => {
  let local: LocalTinker;
  let service: ServiceClient;

  beforeAll(async () => {
    local = await LocalTinker.start();
    service = new ServiceClient({
      baseUrl: local.url,
      apiKey: local.apiKey,
      telemetry: false,
      logLevel: 'silent',
      scheduler: hurry(50),
    });
  }, 60_000);
  afterAll(async () => {
    local.dials.faults = { rules: [] };
    await service.close();
    await local.close();
  });

  it('samples from weights that never go back and are at most 2 steps old', { timeout: 240_000 }, async () => {
    const runs = await Promise.all(
      SEEDS.map(async (seed) => ({
        ...{ seed, published: [] as number[] },
        trainer: await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 2, seed }),
      })),
    );
    const fault = { type: 'status', status: 503, retryAfterMs: 20 } as const;
    local.dials.faults = { seed: 1, rules: [{ probability: 0.3, fault }] };
    const ages = await Promise.all(
      runs.map(async ({ seed, trainer, published }) => {
        const steps = await lastValueFrom(
          from(Array.from({ length: 2 * STEPS }, (_, index) => index)).pipe(
            reinforce(trainer, quick, {
              ...{ group: 2, groupsPerBatch: 2, maxStepsOffPolicy: 2, seed, loss: 'ppo', retries: 20 },
              onEvent: (event: RlEvent) => {
                if (event.type === 'policy-published') published.push(event.step);
              },
            }),
            toArray(),
          ),
        );
        return steps.map(({ metrics }) => metrics['policy/age_max']!);
      }),
    );
    for (const [index, { published }] of runs.entries()) {
      expect(ages[index]).toHaveLength(STEPS);
      expect(published).toStrictEqual([...published].sort((a, b) => a - b));
    }
    expect(Math.max(...ages.flat())).toBe(2);
  });
});
