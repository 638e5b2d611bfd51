import { from, lastValueFrom, map, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceClient, type TrainingClient } from '../../src/client/index.js';
import { checkpointEvery, evaluateEvery, type Step, train } from '../../src/operators/index.js';
import type { Datum } from '../../src/wire/datum.js';
import { ModelInput } from '../../src/wire/modelInput.js';
import { startStepped, type Count, type SteppedService } from './support/cycles.js';

const STEPS = 20;

/** The same short text over and over, so that the loss of a step tells how many steps the weights hold. */
const text = Array.from(Buffer.from('lock-step'));
const data: readonly Datum[] = [
  {
    modelInput: ModelInput.fromInts(text.slice(0, -1)),
    lossFnInputs: { target_tokens: text.slice(1), weights: text.slice(1).map(() => 1) },
  },
];
const batches = (count: number) => from(Array.from({ length: count }, () => data));
const options = { loss: 'cross_entropy', adam: { learningRate: 1e-3 }, ahead: 1 } as const;
/** Without the first two: the pass of the second is in the same cycle as the whole first one. */
const cycles = (steps: readonly Step[]) => steps.slice(2).map((step) => step.cycles);
/** Before a cycle starts, its step has been accepted, and the one after it. */
const oneAhead = (steps: number) => (cycle: number, count: Count) => count('optim_step') >= Math.min(steps, cycle + 1);

describe('train on the embedded service, whose cycles are started by hand', () => {
  let stepped: SteppedService;
  let service: ServiceClient;
  let trainer: TrainingClient;

  beforeEach(async () => {
    stepped = await startStepped();
    const { url: baseUrl, apiKey } = stepped.local;
    service = new ServiceClient({ baseUrl, apiKey, telemetry: false });
    trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4, seed: 1 });
    stepped.takeOver();
  });
  afterEach(async () => {
    stepped.local.controls.clockMs = 0;
    await service.close();
    await stepped.local.close();
  });

  it('takes one cycle per step', async () => {
    const run = lastValueFrom(batches(STEPS).pipe(train(trainer, options), toArray()));
    const steps = await stepped.cycles(run, oneAhead(STEPS));
    expect(cycles(steps)).toStrictEqual(Array.from({ length: STEPS - 2 }, () => 1));
  });

  it('takes one cycle per step with a save every 5 steps, and each state holds the step its name says', async () => {
    const run = lastValueFrom(batches(STEPS).pipe(checkpointEvery({ steps: 5 }), train(trainer, options), toArray()));
    const steps = await stepped.cycles(run, oneAhead(STEPS));
    expect(cycles(steps)).toStrictEqual(Array.from({ length: STEPS - 2 }, () => 1));
    const checkpoints = steps.flatMap(({ checkpoint }) => checkpoint ?? []);
    expect(checkpoints.map(({ name }) => name)).toStrictEqual([
      ...['step-000005', 'step-000010', 'step-000015', 'step-000020'],
    ]);
    // A step's loss is that of the weights before it: the state after 5 steps has the loss of the step with index 5.
    stepped.local.controls.clockMs = 0;
    const sums = checkpoints.slice(0, -1).map(async ({ statePath }) => {
      const resumed = await service.createTrainingClientFromStateWithOptimizer(statePath!);
      return (await resumed.forward(data, 'cross_entropy')).metrics['loss:sum'];
    });
    expect(await Promise.all(sums)).toStrictEqual(
      checkpoints.slice(0, -1).map(({ steps: count }) => steps[count]!.lossSum),
    );
  });

  it('evaluates each snapshot while training continues', async () => {
    const run = lastValueFrom(
      batches(STEPS).pipe(
        evaluateEvery({
          steps: 5,
          evaluate: (sampler) =>
            sampler
              .computeLogprobs(ModelInput.fromInts(text))
              .pipe(map((logprobs) => ({ nll: -logprobs.slice(1).reduce((sum, value) => sum + value, 0) }))),
        }),
        train(trainer, options),
        toArray(),
      ),
    );
    const steps = await stepped.cycles(run, oneAhead(STEPS));
    expect(cycles(steps)).toStrictEqual(Array.from({ length: STEPS - 2 }, () => 1));
    const found = steps.flatMap(({ evaluations = [] }) => evaluations);
    expect(found.map(({ index }) => index)).toStrictEqual([4, 9, 14, 19]);
    // The snapshot after step 4 has the loss that step 5 starts from.
    for (const { index, metrics } of found.slice(0, -1)) {
      expect(metrics['nll']).toBeCloseTo(steps[index + 1]!.lossSum, 3);
    }
  });
});
