import { from, lastValueFrom, map, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ServiceClient, type TrainingClient } from '../../src/client/index.js';
import { LocalTinker } from '../../src/local/index.js';
import { checkpointEvery, evaluateEvery, type Step, train } from '../../src/operators/index.js';
import type { Datum } from '../../src/wire/datum.js';
import { ModelInput } from '../../src/wire/modelInput.js';

const STEPS = 100;
// Long beside what a step takes here, also on a busy machine: what is counted is who was ready when a cycle began.
const CLOCK_MS = 200;

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
const cycles = (steps: readonly Step[]) => {
  const counted = steps.slice(1).map((step) => step.cycles!);
  return counted.reduce((sum, count) => sum + count, 0) / counted.length;
};

// All at once: models take part in the same cycles.
describe.concurrent('train on the embedded service with a lock-step clock', () => {
  let local: LocalTinker;
  let service: ServiceClient;
  const trainer = () => service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4, seed: 1 });

  beforeAll(async () => {
    local = await LocalTinker.start({ clockMs: CLOCK_MS });
    service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
    // The first step compiles.
    await lastValueFrom(batches(3).pipe(train(await trainer(), options)));
  }, 60_000);
  afterAll(async () => {
    await service.close();
    await local.close();
  });

  it('takes one cycle a step over 100 steps', { timeout: 60_000 }, async () => {
    const steps = await lastValueFrom(batches(STEPS).pipe(train(await trainer(), options), toArray()));
    expect(steps).toHaveLength(STEPS);
    expect(cycles(steps)).toBeGreaterThanOrEqual(0.95);
    expect(cycles(steps)).toBeLessThanOrEqual(1.05);
  });

  it(
    'still does with a save every 5 steps, and each state holds the step its name says',
    { timeout: 120_000 },
    async () => {
      const first: TrainingClient = await trainer();
      const steps = await lastValueFrom(
        batches(STEPS).pipe(checkpointEvery({ steps: 5 }), train(first, options), toArray()),
      );
      expect(cycles(steps)).toBeLessThanOrEqual(1.05);
      const checkpoints = steps.flatMap(({ checkpoint }) => checkpoint ?? []);
      expect(checkpoints.map(({ name }) => name)).toStrictEqual(
        Array.from({ length: STEPS / 5 }, (_, count) => `step-${String((count + 1) * 5).padStart(6, '0')}`),
      );
      // A step's loss is that of the weights before it: the state after 5 steps has the loss of the step with index 5.
      const sums = checkpoints.slice(0, -1).map(async ({ statePath }) => {
        const resumed = await service.createTrainingClientFromStateWithOptimizer(statePath!);
        return (await resumed.forward(data, 'cross_entropy')).metrics['loss:sum'];
      });
      expect(await Promise.all(sums)).toStrictEqual(
        checkpoints.slice(0, -1).map(({ steps: count }) => steps[count]!.lossSum),
      );
    },
  );

  it('evaluates each snapshot while training goes on', { timeout: 60_000 }, async () => {
    const steps = await lastValueFrom(
      batches(20).pipe(
        evaluateEvery({
          steps: 5,
          evaluate: (sampler) =>
            sampler
              .computeLogprobs(ModelInput.fromInts(text))
              .pipe(map((logprobs) => ({ nll: -logprobs.slice(1).reduce((sum, value) => sum + value, 0) }))),
        }),
        train(await trainer(), options),
        toArray(),
      ),
    );
    const found = steps.flatMap(({ evaluations = [] }) => evaluations);
    expect(found.map(({ index }) => index)).toStrictEqual([4, 9, 14, 19]);
    // The snapshot after step 4 has the loss that step 5 starts from.
    for (const { index, metrics } of found.slice(0, -1)) {
      expect(metrics['nll']).toBeCloseTo(steps[index + 1]!.lossSum, 3);
    }
    expect(cycles(steps)).toBeLessThanOrEqual(1.3);
  });
});
