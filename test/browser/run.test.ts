import type { Browser } from 'playwright-core';
import { firstValueFrom, from, lastValueFrom, map, range, Subject, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Datum, ModelInput, ServiceClient, type TrainingClient } from 'tinker-rx';
import { type Dashboard, serveDashboard } from 'tinker-rx/dashboard';
import { LocalTinker } from 'tinker-rx/local';
import { checkpointEvery, evaluateEvery, linear, sampleFrom, train } from 'tinker-rx/operators';
import { eventually, launch, open, type Opened, picture } from './browser.js';

const text = (words: string): Int32Array => Int32Array.from(Buffer.from(words));
const datum = (words: string): Datum => {
  const tokens = text(words);
  return {
    modelInput: ModelInput.fromInts(tokens.subarray(0, -1)),
    lossFnInputs: { target_tokens: tokens.subarray(1), weights: new Float32Array(tokens.length - 1).fill(1) },
  };
};
const DATA = ['the sea is blue', 'grass is green today', 'snow is white'].map(datum);
const decode = (tokens: ArrayLike<number>): string => Buffer.from(Uint8Array.from(tokens as number[])).toString('utf8');

describe('the page of a real run', () => {
  let browser: Browser;
  let local: LocalTinker;
  let service: ServiceClient;
  let trainer: TrainingClient;
  let dashboard: Dashboard;
  let opened: Opened;

  beforeAll(async () => {
    browser = await launch();
    // With a clock, as the real service has: a step takes a while, and can be seen on its way.
    local = await LocalTinker.start({ clockMs: 60, flags: { sampleDispatchBytesSemaphoreSize: 4 * 1024 * 1024 } });
    service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, logLevel: 'silent' });
    dashboard = await serveDashboard(service, { decode, title: 'colours' });
    opened = await open(browser, dashboard.url);
    trainer = await service.createLoraTrainingClient({ baseModel: local.baseModels[0]!, rank: 8, seed: 1 });
  });
  afterAll(async () => {
    await browser?.close();
    await dashboard?.close();
    await service?.close();
    await local?.close();
  });

  const tile = (name: string) => opened.page.locator(`[data-tile="${name}"] dd`).first();
  const trainSome = (steps: number, run: string, client = trainer) =>
    lastValueFrom(
      range(0, steps).pipe(
        map(() => DATA),
        checkpointEvery({ steps: 10 }),
        train(client, { loss: 'cross_entropy', adam: { learningRate: linear(5e-3, { steps }) } }),
        dashboard.showSteps(run),
        toArray(),
      ),
    );

  it('shows the curve as it grows, and where the run stands', async () => {
    const { page } = opened;
    await eventually(
      () => page.locator('#connection').textContent(),
      (said) => said === 'live',
    );
    const seen: number[] = [];
    const watching = (async () => {
      await eventually(
        async () => {
          const step = Number(await tile('Step').textContent());
          if (step !== seen.at(-1)) seen.push(step);
          return step;
        },
        (step) => step === 30,
      );
    })();
    const steps = await trainSome(30, 'first');
    await watching;
    // It was seen on its way, not only at its end.
    expect(seen.filter((step) => step > 1 && step < 30).length).toBeGreaterThan(1);
    const loss = await eventually(
      () => tile('Loss').textContent(),
      (shown) => shown !== '–',
    );
    expect(Number(loss)).toBeCloseTo(steps.at(-1)!.loss, 2);
    expect(await page.locator('[data-chart="Loss"] canvas').count()).toBe(1);
    await eventually(
      () => page.locator('[data-run="first"]').textContent(),
      (said) => said?.startsWith('firstended30') === true,
    );
  });

  it('lists the checkpoints', async () => {
    const rows = opened.page.locator('#checkpoint-rows tr');
    await eventually(
      () => rows.count(),
      (count) => count === 3,
    );
    expect(await rows.first().textContent()).toContain('tinker://');
  });

  it('shows a second run over the first', async () => {
    const { page } = opened;
    const other = await service.createLoraTrainingClient({ baseModel: local.baseModels[0]!, rank: 4, seed: 2 });
    await trainSome(12, 'second', other);
    await eventually(
      () => page.locator('#run-rows tr').count(),
      (count) => count === 2,
    );
    const output = page.locator('[data-chart="Loss"] output');
    await eventually(
      () => output.textContent(),
      (said) => /first .*second /.test(said ?? ''),
    );
  });

  it('shows samples as they arrive, coloured, with the value of each token', async () => {
    const { page } = opened;
    const sampler = await trainer.saveWeightsAndGetSamplingClient();
    const prompts = ['the sea', 'grass is', 'snow'].map((words) => ModelInput.fromInts(text(words)));
    await lastValueFrom(
      from(prompts).pipe(
        sampleFrom(sampler, { numSamples: 4, samplingParams: { maxTokens: 12, temperature: 1, seed: 1 } }),
        dashboard.showSamples({ run: 'first' }),
      ),
    );
    const articles = page.locator('#sample-list article');
    await eventually(
      () => articles.count(),
      (count) => count === 12,
    );
    const token = articles.first().locator('i').first();
    await token.hover();
    expect(await page.locator('#tip').textContent()).toMatch(/token \d+\nlogprob −?\d+\.\d{3} · probability [\d.]+ %/);
    expect(await page.locator('#sample-list i.p0, #sample-list i.p1, #sample-list i.p2').count()).toBeGreaterThan(0);

    await page.locator('#search').fill('grass');
    await eventually(
      () => articles.count(),
      (count) => count === 4,
    );
    expect(await page.locator('#sample-count').textContent()).toContain('found in 12');
    expect(await page.locator('#sample-list mark').count()).toBe(4);
    await page.locator('#search').fill('');
    await eventually(
      () => articles.count(),
      (count) => count === 12,
    );

    await articles.first().locator('.text').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    expect(await page.locator('#sample-list i.at').count()).toBe(1);
  });

  it('shows a 429 as a pause, and that it is over', async () => {
    const { page } = opened;
    local.controls.faults = {
      rules: [{ endpoint: 'asample', nth: 1, fault: { type: 'status', status: 429, retryAfter: 5 } }],
    };
    const sampler = await trainer.saveWeightsAndGetSamplingClient();
    const sampled = firstValueFrom(
      sampler.sample({ prompt: ModelInput.fromInts(text('the')), numSamples: 1, samplingParams: { maxTokens: 4 } }),
    );
    const pause = page.locator('.pause[data-kind="sampling"]');
    await eventually(
      () => pause.count(),
      (count) => count === 1,
    );
    expect(await pause.textContent()).toMatch(/Sampling is paused.*s left.*slow down \(429\)/);
    await picture(page, 'pause', false);
    await sampled;
    await eventually(
      () => pause.count(),
      (count) => count === 0,
    );
    expect(await page.locator('#notes').textContent()).toContain('sampling is paused for 5000 ms');
  });

  it('says what every request waits for, and why', async () => {
    const { page } = opened;
    local.controls.pause('paused_capacity', 'other tenants are being served');
    const pass = trainer.forwardBackward(DATA, 'cross_entropy');
    const row = page.locator('#requests tr', { hasText: 'ForwardBackward' });
    await eventually(
      () => row.count(),
      (count) => count === 1,
    );
    await eventually(
      () => row.textContent(),
      (said) => said?.includes('capacity: the service is short of it (other tenants are being served)') === true,
      40_000,
    );
    await page.evaluate(() => scrollTo(0, 0));
    await picture(page, 'waiting');
    local.controls.resume();
    await pass;
    await eventually(
      () => row.count(),
      (count) => count === 0,
    );
    expect(await page.locator('#waiting-summary').textContent()).toBe('Nothing is in flight.');
  });

  it('shows a backoff and a pause for billing, with the reason', async () => {
    const { page } = opened;
    const fault = (endpoint: string, status: number, detail: string) => ({
      rules: [{ endpoint, nth: 1, fault: { type: 'status' as const, status, detail, retryAfterMs: 6000 } }],
    });
    local.controls.faults = fault('forward_backward', 503, 'no room');
    const first = lastValueFrom(trainer.forwardBackward(DATA, 'cross_entropy'));
    const backoff = page.locator('.pause[data-kind="backoff"]');
    await eventually(
      () => backoff.count(),
      (count) => count === 1,
    );
    expect(await backoff.textContent()).toMatch(/Backing off on forward_backward.*s left.*no room/);
    const row = (request: string) => page.locator('#requests tr', { hasText: request });
    // It names the call that waits, and what waits behind it does so too.
    const behind = lastValueFrom(trainer.optimStep({ learningRate: 0 }));
    await eventually(
      () => row('ForwardBackward').textContent(),
      (said) => /its next try in [\d.]+ s: .*no room/.test(said ?? ''),
    );
    await eventually(
      () => row('OptimStep').textContent(),
      (said) => said?.includes('its turn: one call of this model before it') === true,
    );
    await page.evaluate(() => document.getElementById('waiting')!.scrollIntoView({ behavior: 'instant' }));
    await picture(page, 'unsent', false);
    await first;
    await behind;
    local.controls.faults = fault('forward_backward', 402, 'the account is empty');
    const second = lastValueFrom(trainer.forwardBackward(DATA, 'cross_entropy'));
    const billing = page.locator('.pause[data-kind="billing"]');
    await eventually(
      () => billing.count(),
      (count) => count === 1,
    );
    expect(await billing.textContent()).toMatch(/Paused for billing.*the account is empty/);
    await picture(page, 'billing', false);
    await second;
    await eventually(
      () => billing.count(),
      (count) => count === 0,
    );
  });

  it('shows bytes in flight against the budget that the service gives', async () => {
    const budget = opened.page.locator('[data-budget="sampleBytes"]');
    expect(await budget.textContent()).toMatch(/Prompts being sent.* of 4 MiB/);
    expect(await opened.page.locator('[data-tile="Bytes in flight"]').textContent()).toMatch(/ of [\d.]+ MiB/);
  });

  it('shows an error', async () => {
    local.controls.faults = {
      rules: [{ endpoint: 'optim_step', nth: 1, fault: { type: 'status', status: 400, detail: 'no such thing' } }],
    };
    await expect(lastValueFrom(trainer.optimStep({ learningRate: 1e-3 }))).rejects.toThrow('no such thing');
    local.controls.faults = { rules: [] };
    const errors = opened.page.locator('#error-rows');
    await eventually(
      () => errors.textContent(),
      (said) => /OptimStep.*no such thing/.test(said ?? ''),
    );
    // Refused before anything was sent: it says what it was all the same.
    await expect(lastValueFrom(trainer.saveState(''))).rejects.toThrow();
    await eventually(
      () => errors.locator('tr').first().textContent(),
      (said) => /invalid_input.*SaveWeights/.test(said ?? ''),
    );
  });

  it('can be used with the keyboard alone', async () => {
    const { page } = opened;
    await page.locator('[data-chart="Loss"]').focus();
    await page.keyboard.press('ArrowLeft');
    expect(await page.locator('[data-chart="Loss"] output').textContent()).toMatch(/^step \d+: /);
    await page.keyboard.press('+');
    await eventually(
      () => page.locator('#unzoom').isVisible(),
      (shown) => shown,
    );
    await page.keyboard.press('0');
    await eventually(
      () => page.locator('#unzoom').isVisible(),
      (shown) => !shown,
    );
    const reached = new Set<string>();
    const unmarked: string[] = [];
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
    for (let press = 0; press < 60; press++) {
      await page.keyboard.press('Tab');
      const { name, marked } = await page.evaluate(() => {
        const at = document.activeElement!;
        const name = at.id || at.getAttribute('data-chart') || at.getAttribute('href') || at.className || at.tagName;
        return { name, marked: at === document.body || getComputedStyle(at).outlineStyle !== 'none' };
      });
      reached.add(name);
      if (!marked) unmarked.push(name);
    }
    // Wherever one is, one can see it.
    expect(unmarked).toStrictEqual([]);
    for (const place of ['theme', 'smoothing', 'Loss', 'search', 'sample-order', '#waiting'])
      expect(reached).toContain(place);
  });

  it('is light, dark, and readable on a phone', async () => {
    const { page } = opened;
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.emulateMedia({ colorScheme: 'light' });
    await page.evaluate(() => scrollTo(0, 0));
    await picture(page, 'light');
    const light = await background();
    await page.emulateMedia({ colorScheme: 'dark' });
    await eventually(background, (colour) => colour !== light);
    await new Promise((resolve) => setTimeout(resolve, 800));
    await picture(page, 'dark');
    await page.locator('#theme').selectOption('light');
    await eventually(background, (colour) => colour === light);

    const phone = await open(browser, dashboard.url, {
      viewport: { width: 390, height: 844 },
      isMobile: true,
      hasTouch: true,
    });
    await eventually(
      () => phone.page.locator('[data-chart="Loss"] canvas').count(),
      (count) => count === 1,
    );
    await eventually(
      () => phone.page.locator('#sample-list article').count(),
      (count) => count > 0,
    );
    await new Promise((resolve) => setTimeout(resolve, 500));
    // Nothing sticks out to the side.
    expect(await phone.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await picture(phone.page, 'phone-top', false);
    await phone.page.locator('#waiting').scrollIntoViewIfNeeded();
    await phone.page.evaluate(() => document.getElementById('samples')!.scrollIntoView({ behavior: 'instant' }));
    await picture(phone.page, 'phone-samples', false);
    await phone.page.evaluate(() => document.getElementById('errors')!.scrollIntoView({ behavior: 'instant' }));
    await picture(phone.page, 'phone-end', false);
    expect(phone.problems).toStrictEqual([]);
    await phone.page.context().close();
  });

  it('shows the loss on held-out data while the run continues, with a chart of its own', async () => {
    const client = await service.createLoraTrainingClient({ baseModel: local.baseModels[0]!, rank: 4, seed: 3 });
    const batches = new Subject<Datum[]>();
    const training = lastValueFrom(
      batches.pipe(
        evaluateEvery({ steps: 2, validation: DATA.slice(0, 1), atEnd: true }),
        train(client, { loss: 'cross_entropy', adam: { learningRate: 5e-3 } }),
        dashboard.showSteps('validated'),
        toArray(),
      ),
    );
    const tile = opened.page.locator('[data-tile="Validation loss"] dd');
    for (let batch = 0; batch < 4; batch++) batches.next(DATA.slice(1));
    await eventually(
      () => tile.allTextContents(),
      ([shown]) => Number(shown) > 0,
    );
    expect(await opened.page.locator('#newest').textContent()).toMatch(/^validated the newest step of 3 runs$/);
    expect(await opened.page.locator('[data-run="validated"]').textContent()).toMatch(/^validatedrunning/);
    expect(await opened.page.locator('#connection').textContent()).toBe('live');
    for (let batch = 0; batch < 2; batch++) batches.next(DATA.slice(1));
    batches.complete();
    const steps = await training;
    await eventually(
      () => opened.page.locator('#connection').textContent(),
      (said) => said === 'ended',
    );
    const losses = steps.flatMap(({ evaluations = [] }) =>
      evaluations.map(({ metrics }) => metrics['validation_loss']!),
    );
    expect(losses).toHaveLength(3);
    const chart = opened.page.locator('[data-chart="Validation loss"]');
    // Only this run has one, so the chart needs no name beside the value.
    await eventually(
      async () => Number(await chart.locator('output').textContent()),
      (shown) => Math.abs(shown - losses.at(-1)!) < 0.01,
    );
    expect(await chart.locator('canvas').count()).toBe(1);
  });

  it('never shows the key, and asks nobody else', async () => {
    const { page, problems } = opened;
    expect(problems).toStrictEqual([]);
    const response = await fetch(dashboard.url);
    expect(await response.text()).not.toContain(local.apiKey);
    expect(await page.content()).not.toContain(local.apiKey);
    // And nothing that would be sent to a page that comes now.
    const sent = await page.evaluate(async () => {
      const token = new URL(location.href).searchParams.get('token');
      const { body } = await fetch('/events', { headers: { authorization: `Bearer ${token}` } });
      const reader = body!.pipeThrough(new TextDecoderStream()).getReader();
      let text = '';
      while (!text.includes(': hello')) text += (await reader.read()).value;
      await reader.cancel();
      return text;
    });
    expect(sent).toContain('no such thing');
    expect(sent.length).toBeGreaterThan(1000);
    expect(sent).not.toContain(local.apiKey);
    expect(sent).not.toContain('tml-');
  });
});
