import { from, lastValueFrom, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ServiceClient } from '../../src/client/index.js';
import { LocalTinker } from '../../src/local/index.js';
import { defineLoss, dpo } from '../../src/losses/index.js';
import { type Step, train, trainPreferences } from '../../src/operators/index.js';
import type { Datum } from '../../src/wire/datum.js';
import { ModelInput } from '../../src/wire/modelInput.js';

// `bench/losses.mjs` measures the same over fifty steps, and beside the cookbook.
const STEPS = 20;
const CLOCK_MS = 300;

const datum = (text: string): Datum => {
  const tokens = Array.from(Buffer.from(text));
  return {
    modelInput: ModelInput.fromInts(tokens.slice(0, -1)),
    lossFnInputs: { target_tokens: tokens.slice(1), weights: tokens.slice(1).map(() => 1) },
  };
};
const batches = () => from(Array.from({ length: STEPS }, () => [datum('better'), datum('worse')]));
const squares = defineLoss(({ logprobs, weights }, ops) => ops.weightedSum(logprobs.square(), weights));
/** Over all but the first steps, which compile. */
const cycles = (steps: readonly Step[]) => {
  const counted = steps.slice(4).map((step) => step.cycles!);
  return counted.reduce((sum, count) => sum + count, 0) / counted.length;
};

// All at once: models take part in the same cycles.
describe.concurrent.each([
  ['on the service', true],
  ['here', false],
])('losses that run %s, on a lock-step clock', (_, customLossServerSide) => {
  let local: LocalTinker;
  let service: ServiceClient;
  beforeAll(async () => {
    local = await LocalTinker.start({ clockMs: CLOCK_MS, flags: { customLossServerSide } });
    service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
  }, 60_000);
  afterAll(async () => {
    await service.close();
    await local.close();
  });
  const trainer = () => service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4, seed: 1 });

  it('take one cycle per step in train', { timeout: 60_000 }, async () => {
    const steps = await lastValueFrom(batches().pipe(train(await trainer(), { loss: squares }), toArray()));
    expect(steps).toHaveLength(STEPS);
    expect(cycles(steps)).toBeLessThanOrEqual(1.1);
  });

  it('take one cycle per step for pairs, which run here either way', { timeout: 60_000 }, async () => {
    const reference = await service.createSamplingClient({ baseModel: 'tinker-rx/tiny' });
    const steps = await lastValueFrom(
      batches().pipe(trainPreferences(await trainer(), { loss: dpo(), reference }), toArray()),
    );
    expect(steps).toHaveLength(STEPS);
    expect(cycles(steps)).toBeLessThanOrEqual(1.1);
  });
});
