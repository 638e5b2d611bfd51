import { from, lastValueFrom, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceClient, type TrainingClient } from '../../src/client/index.js';
import { defineLoss, dpo } from '../../src/losses/index.js';
import { type Step, train, trainPreferences } from '../../src/operators/index.js';
import type { Datum } from '../../src/wire/datum.js';
import { ModelInput } from '../../src/wire/modelInput.js';
import { startStepped, type Count, type SteppedService } from './support/cycles.js';

const STEPS = 8;

const datum = (text: string): Datum => {
  const tokens = Array.from(Buffer.from(text));
  return {
    modelInput: ModelInput.fromInts(tokens.slice(0, -1)),
    lossFnInputs: { target_tokens: tokens.slice(1), weights: tokens.slice(1).map(() => 1) },
  };
};
const batches = () => from(Array.from({ length: STEPS }, () => [datum('better'), datum('worse')]));
const squares = defineLoss(({ logprobs, weights }, ops) => ops.weightedSum(logprobs.square(), weights));
/** Without the first two, before which the pipeline fills. */
const cycles = (steps: readonly Step[]) => steps.slice(2).map((step) => step.cycles);
const ONE_EACH = Array.from({ length: STEPS - 2 }, () => 1);

/** A loss on the service: the step of this cycle has been accepted, and the next one. */
const onTheService = (cycle: number, count: Count) => count('optim_step') >= Math.min(STEPS, cycle + 1);
/** A loss computed here takes two passes a step: the first pass of the next step goes with the second one and the optimizer step of this one. */
const here = (cycle: number, count: Count) =>
  count('forward_backward') >= Math.min(2 * STEPS, 2 * cycle - 1) && count('optim_step') >= Math.min(STEPS, cycle - 1);

describe.each([
  ['on the service', true, onTheService],
  ['here', false, here],
])('losses that run %s, with cycles started by hand', (_, customLossServerSide, ready) => {
  let stepped: SteppedService;
  let service: ServiceClient;
  let trainer: TrainingClient;
  beforeEach(async () => {
    stepped = await startStepped({ flags: { customLossServerSide } });
    const { url: baseUrl, apiKey } = stepped.local;
    service = new ServiceClient({ baseUrl, apiKey, telemetry: false });
    trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4, seed: 1 });
  });
  afterEach(async () => {
    stepped.local.controls.clockMs = 0;
    await service.close();
    await stepped.local.close();
  });

  it('take one cycle per step in train', async () => {
    stepped.takeOver();
    const run = lastValueFrom(batches().pipe(train(trainer, { loss: squares }), toArray()));
    expect(cycles(await stepped.cycles(run, ready))).toStrictEqual(ONE_EACH);
  });

  it('take one cycle per step for pairs, which run here either way', async () => {
    const reference = await service.createSamplingClient({ baseModel: 'tinker-rx/tiny' });
    stepped.takeOver();
    const run = lastValueFrom(batches().pipe(trainPreferences(trainer, { loss: dpo(), reference }), toArray()));
    expect(cycles(await stepped.cycles(run, here))).toStrictEqual(ONE_EACH);
  });
});
