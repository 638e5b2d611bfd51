import type { Browser } from 'playwright-core';
import { lastValueFrom, map, range, toArray } from 'rxjs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ServiceClient } from 'tinker-rx';
import { datumFromSequence } from 'tinker-rx/chat';
import { type Dashboard, serveDashboard } from 'tinker-rx/dashboard';
import { LocalTinker } from 'tinker-rx/local';
import { sampleFrom } from 'tinker-rx/operators';
import { eventually, launch, open, picture } from './browser.js';

let browser: Browser;
let local: LocalTinker;
let service: ServiceClient;
let dashboard: Dashboard;
beforeAll(async () => {
  browser = await launch();
  local = await LocalTinker.start();
  service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, logLevel: 'silent' });
});
afterAll(async () => {
  await browser?.close();
  await dashboard?.close();
  await service?.close();
  await local?.close();
});

it('shows the reward of reinforcement learning as it rises, and the samples it is of', async () => {
  const trainer = await service.createLoraTrainingClient({ baseModel: local.baseModels[0]!, rank: 8, seed: 1 });
  const renderer = await trainer.getRenderer();
  const tokenizer = await trainer.getTokenizer();
  const decode = (tokens: ArrayLike<number>) => tokenizer.decode(tokens);
  // Served late: what is under way is seen all the same.
  dashboard = await serveDashboard(service, { title: 'reinforce', decode });
  const { page, problems } = await open(browser, dashboard.url);
  const prompt = renderer.buildGenerationPrompt([{ role: 'user', content: 'Say something.' }]);
  for (let round = 0; round < 6; round++) {
    const sampler = await trainer.saveWeightsAndGetSamplingClient();
    const groups = await lastValueFrom(
      range(0, 4).pipe(
        sampleFrom(sampler, {
          request: (group) => ({
            prompt,
            numSamples: 8,
            samplingParams: { maxTokens: 12, temperature: 1, seed: 100 * round + group },
          }),
        }),
        map(({ response }) => {
          // The more of an answer is the letter e, the better it is.
          const rewards = response.sequences.map(
            ({ tokens }) => tokens.filter((token) => token === 101).length / tokens.length,
          );
          return { prompt, response, rewards };
        }),
        dashboard.showSamples({ run: 'e' }),
        toArray(),
      ),
    );
    const data = groups.flatMap(({ response: { sequences }, rewards }) => {
      const mean = rewards.reduce((sum, one) => sum + one, 0) / rewards.length;
      return sequences.map((sequence, place) =>
        datumFromSequence(prompt, sequence, { advantage: rewards[place]! - mean }),
      );
    });
    const pass = trainer.forwardBackward(data, 'importance_sampling');
    await trainer.optimStep({ learningRate: 5e-3 });
    await pass;
  }
  await eventually(
    () => page.locator('[data-tile="Step"] dd').textContent(),
    (said) => said === '6',
  );
  await eventually(
    () => page.locator('[data-chart="Reward"] canvas').count(),
    (count) => count === 1,
  );
  expect(Number(await page.locator('[data-tile="Reward"] dd').textContent())).toBeGreaterThan(0);
  await eventually(
    () => page.locator('#sample-count').textContent(),
    (said) => said === '1–20 of 192 samples',
  );
  const rewards = async () =>
    (await page.locator('#sample-list article header').allTextContents()).map((facts) =>
      Number(/reward ([\d.]+)/.exec(facts)?.[1]),
    );
  await page.locator('#sample-order').selectOption('best');
  const best = await eventually(rewards, (all) =>
    all.every((reward, place) => place === 0 || reward <= all[place - 1]!),
  );
  expect(best[0]).toBeGreaterThan(0);
  await picture(page, 'reinforce');
  expect(problems).toStrictEqual([]);
});
