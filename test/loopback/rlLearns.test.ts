import { from, lastValueFrom, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Renderer } from '../../src/chat/index.js';
import { ServiceClient, type TrainingClient } from '../../src/client/index.js';
import { LocalTinker } from '../../src/local/index.js';
import { repeatEpochs } from '../../src/operators/index.js';
import { reinforce, type ReinforceOptions, singleTurn } from '../../src/rl/index.js';

interface Fact {
  readonly question: string;
  readonly answer: string;
}
const facts: readonly Fact[] = [
  { question: 'What color is the sky?', answer: 'blue' },
  { question: 'What color is grass?', answer: 'green' },
  { question: 'What color is snow?', answer: 'white' },
  { question: 'What color is coal?', answer: 'black' },
];

describe('reinforcement learning on the embedded service', () => {
  let local: LocalTinker;
  let service: ServiceClient;
  let renderer: Renderer;
  let trainer: TrainingClient;

  beforeAll(async () => {
    local = await LocalTinker.start();
    service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
    trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 16, seed: 1 });
    renderer = await trainer.getRenderer();
  });
  afterAll(async () => {
    await service.close();
    await local.close();
  });

  const agent = () =>
    singleTurn<Fact>({
      renderer,
      prompt: ({ question }) => question,
      reward: ({ text }, { answer }) => (text === answer ? 1 : 0),
      samplingParams: { maxTokens: 32 },
    });
  const learn = async (options: Partial<ReinforceOptions<Fact>>, steps: number) => {
    const fresh = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 16, seed: 1 });
    return lastValueFrom(
      from(facts).pipe(
        repeatEpochs({ epochs: steps }),
        reinforce<Fact>(fresh, agent(), { group: 16, groupsPerBatch: 4, adam: { learningRate: 3e-3 }, ...options }),
        toArray(),
      ),
    );
  };

  it.each<[string, Partial<ReinforceOptions<Fact>>]>([
    ['synchronously', {}],
    ['in streamed minibatches', { minibatches: 2 }],
    ['asynchronously', { maxStepsOffPolicy: 1 }],
  ])('raises its reward %s', async (_, options) => {
    const steps = await learn(options, 12);
    const rewards = steps.map(({ reward }) => reward);
    expect(rewards[0]).toBeLessThan(0.4);
    expect(Math.max(...rewards)).toBeGreaterThan(0.7);
    for (const { metrics } of steps) {
      expect(metrics['policy/age_max']).toBeLessThanOrEqual(options.maxStepsOffPolicy ?? 0);
    }
  });
});
