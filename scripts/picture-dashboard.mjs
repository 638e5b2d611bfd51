// Takes docs/images/dashboard-{light,dark}.png, the README's picture: a real run on the embedded service, in a real browser.
//   npm run build && node scripts/picture-dashboard.mjs
// Needs Debian's chromium, or CHROMIUM=<path>.
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { from, lastValueFrom, toArray } from 'rxjs';
import { ServiceClient } from 'tinker-rx';
import { serveDashboard } from 'tinker-rx/dashboard';
import { LocalTinker } from 'tinker-rx/local';
import {
  batch,
  checkpointEvery,
  evaluateEvery,
  linear,
  repeatEpochs,
  sampleFrom,
  toDatums,
  train,
} from 'tinker-rx/operators';
import { fromConversations } from 'tinker-rx/sources';

const STEPS = 60;
const file = (path) => fileURLToPath(new URL(path, import.meta.url));
const folder = file('../docs/images/');
mkdirSync(folder, { recursive: true });

const local = await LocalTinker.start();
const service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, logLevel: 'silent' });
const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 16, seed: 1 });
const renderer = await trainer.getRenderer();
const dashboard = await serveDashboard(service, {
  title: 'capitals and colors',
  decode: (tokens) => renderer.parse(Int32Array.from(tokens)).text || renderer.tokenizer.decode(tokens),
});

const chats = fromConversations(file('../examples/data/questions.jsonl'));
const data = await lastValueFrom(chats.pipe(toDatums(renderer), toArray()));
await lastValueFrom(
  from(data).pipe(
    repeatEpochs({ epochs: STEPS }),
    batch({ size: data.length }),
    checkpointEvery({ steps: 20 }),
    evaluateEvery({ steps: 10, validation: data.slice(0, 5) }),
    train(trainer, { loss: 'cross_entropy', adam: { learningRate: linear(1e-2, { steps: STEPS }) } }),
    dashboard.showSteps('first'),
  ),
);
const sampler = await trainer.saveWeightsAndGetSamplingClient();
const questions = ['What is the capital of France?', 'What is the capital of Japan?', 'What color is the sky?'];
await lastValueFrom(
  from(questions).pipe(
    sampleFrom(sampler, {
      request: (content) => ({
        prompt: renderer.buildGenerationPrompt([{ role: 'user', content }]),
        numSamples: 2,
        samplingParams: { maxTokens: 32, temperature: 0.5, seed: 1, stop: renderer.getStopSequences() },
      }),
    }),
    dashboard.showSamples({ run: 'first' }),
  ),
);

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});
for (const colorScheme of ['light', 'dark']) {
  const context = await browser.newContext({
    viewport: { width: 1200, height: 760 },
    deviceScaleFactor: 1.5,
    colorScheme,
  });
  const page = await context.newPage();
  await page.goto(dashboard.url);
  await page.getByText('What is the capital of France?').first().waitFor();
  await page.waitForTimeout(1500); // until the charts have been drawn
  await page.screenshot({ path: `${folder}dashboard-${colorScheme}.png` });
  await context.close();
}
await browser.close();
await dashboard.close();
await service.close();
await local.close();
