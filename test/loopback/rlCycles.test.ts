import { from, lastValueFrom, map, throwError, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceClient, type TrainingClient } from '../../src/client/index.js';
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
import { startStepped, type Count, type SteppedService } from './support/cycles.js';

const STEPS = 10;
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
/** How many cycles each step took, by the clock of the service. The first one has no step before it. */
const cycles = (steps: readonly RlStep[]) => steps.slice(1).map((step) => step.cycles);

/** The first cycle makes the first sampler. Before each further one, a step and its snapshot have been accepted. */
const withSnapshots = (cycle: number, count: Count) =>
  count('save_weights_for_sampler') >= Math.min(STEPS + 1, cycle) && count('optim_step') >= Math.min(STEPS, cycle - 1);

describe('reinforcement learning on the embedded service, whose cycles are started by hand', () => {
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

  it.each<[string, Partial<ReinforceOptions<number>>]>([
    ['synchronously', {}],
    ['in streamed minibatches', { minibatches: 2 }],
    ['asynchronously', { maxStepsOffPolicy: 1 }],
  ])('takes one cycle per step %s', async (_, options) => {
    const tasks = from(Array.from({ length: 2 * STEPS }, (_, index) => index));
    const run = lastValueFrom(
      tasks.pipe(reinforce(trainer, quick, { group: 2, groupsPerBatch: 2, ...options }), toArray()),
    );
    const steps = await stepped.cycles(run, withSnapshots);
    expect(cycles(steps)).toStrictEqual(Array.from({ length: STEPS - 1 }, () => 1));
  });
});
