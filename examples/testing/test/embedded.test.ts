// The real protocol and a model that learns, in the test's own process: nothing is scripted but the faults.
import { from, lastValueFrom, repeat, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceClient, type TinkerEvent } from 'tinker-rx';
import { LocalTinker } from 'tinker-rx/local';
import { ask, fineTune } from '../src/pipeline.js';
import { capitals, renderer } from './conversations.js';

describe('on the embedded service', () => {
  let local: LocalTinker;
  let service: ServiceClient;
  const events: TinkerEvent[] = [];

  beforeEach(async () => {
    // The answer to the third optimizer step is lost on its way: the client must not apply that step twice.
    const lost = { endpoint: 'optim_step', nth: 3, fault: { type: 'reset', when: 'after' } } as const;
    local = await LocalTinker.start({ faults: { rules: [lost] } });
    service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey });
    service.events$.subscribe((event) => events.push(event));
  });
  afterEach(async () => {
    await service.close();
    await local.close();
  });

  it('the capitals are learned, through a lost answer', async () => {
    const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 16, seed: 1 });
    const rows = from(capitals).pipe(repeat(20));
    const steps = await lastValueFrom(fineTune(rows, trainer, renderer).pipe(toArray()));
    expect(steps).toHaveLength(40);
    expect(steps.at(-1)!.loss).toBeLessThan(0.1 * steps[0]!.loss);
    expect(events).toContainEqual(expect.objectContaining({ type: 'request-retry', path: 'optim_step' }));

    const sampler = await trainer.saveWeightsAndGetSamplingClient();
    const questions = from(['What is the capital of Japan?', 'What is the capital of Cuba?']);
    const answers = await lastValueFrom(ask(questions, sampler, renderer).pipe(toArray()));
    expect(answers.map(({ text }) => text).sort()).toEqual(['Havana', 'Tokyo']);
    // It trains for a second or two; a busy machine takes longer.
  }, 30_000);
});
