import { concatMap, defer, from, lastValueFrom, map, mergeMap, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ServiceClient } from '../../src/client/index.js';
import { LocalTinker } from '../../src/local/index.js';
import { reinforce, type RlEvent, type Rollout, type RolloutHook } from '../../src/rl/index.js';
import { ModelInput } from '../../src/wire/modelInput.js';
import { hurry } from './support/hurry.js';

const STEPS = 10;
const SEEDS = Array.from({ length: 20 }, (_, index) => index + 1);
/** The service keeps the 32 newest snapshots, and each of these runs uses a few. */
const AT_ONCE = 4;
const PROMPT = ModelInput.fromInts(Array.from(Buffer.from('faults')));

/** A short sample, and a reward by its place in the group, so that every group teaches something. */
const quick: RolloutHook<number> = (_task, policy, { index }) =>
  policy.turn(PROMPT, { maxTokens: 2 }).pipe(map((turn): Rollout => ({ turns: [turn], reward: index % 2 })));

describe('asynchronous reinforcement learning where 30 % of all requests fail', () => {
  let local: LocalTinker;
  let service: ServiceClient;

  beforeAll(async () => {
    local = await LocalTinker.start();
    const scheduler = hurry(50);
    service = new ServiceClient({
      ...{ baseUrl: local.url, apiKey: local.apiKey, telemetry: false, logLevel: 'silent', scheduler },
    });
  });
  afterAll(async () => {
    local.controls.faults = { rules: [] };
    await service.close();
    await local.close();
  });

  /** One run: the steps of the weights it published, and the ages of the answers of each step. */
  const run = (seed: number) =>
    defer(() => {
      const published: number[] = [];
      const onEvent = (event: RlEvent) => {
        if (event.type === 'policy-published') published.push(event.step);
      };
      const options = { group: 2, groupsPerBatch: 2, maxStepsOffPolicy: 2, onFailure: { retries: 20 }, seed, onEvent };
      return service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 2, seed }).pipe(
        concatMap((trainer) =>
          from(Array.from({ length: 2 * STEPS }, (_, index) => index)).pipe(
            reinforce(trainer, quick, { ...options, loss: 'ppo' }),
          ),
        ),
        map(({ metrics }) => metrics['policy/age_max']!),
        toArray(),
        map((ages) => ({ published, ages })),
      );
    });

  it('samples from weights that never go back and are at most 2 steps old', async () => {
    const fault = { type: 'status', status: 503, retryAfterMs: 20 } as const;
    // Some answers are late, too, so that snapshots come in another order than they were taken in.
    const late = { type: 'delay', delayMs: 300 } as const;
    local.controls.faults = {
      seed: 1,
      rules: [
        { probability: 0.3, fault },
        { endpoint: 'retrieve_future*', probability: 0.2, fault: late },
      ],
    };
    const runs = await lastValueFrom(from(SEEDS).pipe(mergeMap(run, AT_ONCE), toArray()));
    expect(runs).toHaveLength(SEEDS.length);
    for (const { ages, published } of runs) {
      expect(ages).toHaveLength(STEPS);
      expect(published).toStrictEqual([...published].sort((a, b) => a - b));
    }
    expect(Math.max(...runs.flatMap(({ ages }) => ages))).toBe(2);
  });
});
