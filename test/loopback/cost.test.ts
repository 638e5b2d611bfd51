/** Costs on the embedded service, whose own billing they are held against. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { from, lastValueFrom, toArray } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { AdminClient, ServiceClient } from '../../src/client/index.js';
import {
  answers,
  budgetSpent,
  type Cost,
  evaluate,
  exact,
  readPrices,
  reconcileCost,
  trackCost,
  withinBudget,
} from '../../src/evals/index.js';
import { LocalTinker } from '../../src/local/index.js';
import { batch, toDatums, trainUntil } from '../../src/operators/index.js';
import { fromArray } from '../../src/sources/index.js';
import { run } from '../unit/cli/terminal.js';

let local: LocalTinker;
let folder: string;
beforeAll(async () => {
  local = await LocalTinker.start();
});
afterAll(() => local.close());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-cost-'));
  vi.stubEnv('NO_COLOR', '1');
  vi.stubEnv('XDG_CACHE_HOME', folder);
  vi.stubEnv('TINKER_BASE_URL', local.url);
  vi.stubEnv('TINKER_API_KEY', local.apiKey);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const path = (name: string): string => join(folder, name);
const prices = { asOf: '2026-01-01', models: { 'tinker-rx/tiny': { prefill: 1, cached: 0.2, sample: 2, train: 4 } } };
const rows = Array.from({ length: 24 }, (_, index) => ({
  messages: [
    { role: 'user' as const, content: `What is number ${index}?` },
    { role: 'assistant' as const, content: 'A word.' },
  ],
}));

describe('cost', () => {
  it('is what the service bills, to the token', async () => {
    const service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
    const costs: Cost[] = [];
    trackCost(service.events$, { model: 'tinker-rx/tiny', prices }).subscribe((cost) => costs.push(cost));
    const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4 });
    const renderer = await trainer.getRenderer();
    const data = await lastValueFrom(from(rows.slice(0, 6)).pipe(toDatums(renderer), toArray()));
    await Promise.all([trainer.forwardBackward(data, 'cross_entropy'), trainer.optimStep({ learningRate: 1e-4 })]);
    await trainer.forward(data.slice(0, 2), 'cross_entropy');
    const sampler = await trainer.saveWeightsAndGetSamplingClient();
    const prompt = renderer.buildGenerationPrompt([{ role: 'user', content: 'Say something.' }]);
    for (const seed of [1, 2]) await sampler.sample({ prompt, numSamples: 3, samplingParams: { maxTokens: 5, seed } });
    const sessionId = service.sessionId!;
    await service.close();
    const hour = 3_600_000;
    const start = Math.floor(Date.now() / hour) * hour;
    const admin = new AdminClient({ baseUrl: local.url, apiKey: local.apiKey });
    const usage = await admin.getBillingUsage({
      startingOn: new Date(start - hour).toISOString(),
      // The hour may end while this runs.
      endingBefore: new Date(start + 2 * hour).toISOString(),
    });
    await admin.close();
    const counted = costs.at(-1)!;
    const { billed, agrees } = reconcileCost(counted, usage, [sessionId]);
    expect(agrees).toBe(true);
    expect(billed.trained).toBe(
      [...data, ...data.slice(0, 2)].reduce((sum, { modelInput }) => sum + modelInput.length, 0),
    );
    expect(billed.prompt).toBe(2 * prompt.length);
    expect(billed.sampled).toBeGreaterThan(0);
    const { cached, sampled, trained } = billed;
    const usd = ((billed.prompt - cached) * 1 + cached * 0.2 + sampled * 2 + trained * 4) / 1e6;
    expect(counted.usd).toBeCloseTo(usd, 12);
    expect(costs[0]).toMatchObject({ tokens: 0, usd: undefined });
    expect(reconcileCost(counted, usage, ['another'])).toMatchObject({ agrees: false, billed: { trained: 0 } });
  });

  it('ends a training run that has spent its tokens, with a checkpoint, after at most the steps in flight', async () => {
    const service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
    const trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4 });
    const renderer = await trainer.getRenderer();
    const cost$ = trackCost(service.events$, { model: 'tinker-rx/tiny', prices });
    const spent$ = budgetSpent(cost$, { tokens: 300 });
    const steps = await lastValueFrom(
      from(rows).pipe(
        toDatums(renderer),
        batch({ size: 2 }),
        trainUntil(spent$, trainer, { loss: 'cross_entropy', ahead: 1 }),
        toArray(),
      ),
    );
    const tokens = steps.filter(({ index }, place) => index !== steps[place - 1]?.index).map((step) => step.tokens);
    const total = tokens.reduce((sum, each) => sum + each, 0);
    // In flight were the step that spent the last of it and the one ahead of it.
    expect(total).toBeGreaterThanOrEqual(300);
    expect(total).toBeLessThan(300 + 2 * Math.max(...tokens));
    expect(tokens.length).toBeLessThan(12);
    expect(steps.at(-1)!.checkpoint!.statePath).toMatch(/^tinker:/);
    await service.close();
  });

  it('begins no further example once an evaluation has spent its tokens', async () => {
    const service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
    const sampler = await service.createSamplingClient({ baseModel: 'tinker-rx/tiny' });
    const renderer = await sampler.getRenderer();
    let newest: Cost | undefined;
    let reason = '';
    const cost$ = trackCost(service.events$, { model: 'tinker-rx/tiny', prices });
    cost$.subscribe((cost) => (newest = cost));
    const tasks = Array.from({ length: 60 }, (_, index) => ({ question: `Number ${index}`, answer: 'x' }));
    const records = await lastValueFrom(
      fromArray(tasks).pipe(
        withinBudget({ cost$, budget: { tokens: 400 }, onSpent: (spent) => (reason = spent.reason) }),
        evaluate(answers({ renderer }), {
          sampler,
          scorers: [exact()],
          samplingParams: { maxTokens: 4 },
          concurrency: 4,
        }),
        toArray(),
      ),
    );
    const most = Math.max(...records.map(({ samples: [one] }) => one!.promptTokens + one!.sampledTokens));
    expect(newest!.tokens).toBeGreaterThanOrEqual(400);
    expect(newest!.tokens).toBeLessThan(400 + 4 * most);
    expect(records.length).toBeLessThan(60);
    expect(reason).toMatch(/^the budget of 400 tokens is spent: \d+ tokens$/);
    await service.close();
  });
});

describe('cost on the command line', () => {
  const write = (name: string, value: unknown): string => {
    const lines = Array.isArray(value) ? value.map((row) => JSON.stringify(row)).join('\n') : JSON.stringify(value);
    writeFileSync(path(name), `${lines}\n`);
    return path(name);
  };
  const lines = (name: string): Record<string, unknown>[] =>
    readFileSync(path(name), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it('train --dry-run estimates what the run then takes, and sends nothing', async () => {
    const flags = [
      '-m',
      'tinker-rx/tiny',
      '--rank',
      '4',
      '--batch-size',
      '4',
      '--prices',
      write('prices.json', prices),
    ];
    const command = ['train', write('rows.jsonl', rows.slice(0, 8)), ...flags, '--log', path('run')];
    vi.stubEnv('TINKER_BASE_URL', 'http://127.0.0.1:9');
    const dry = await run([...command, '--dry-run', '--format', 'json', '--budget-usd', '0.000001']);
    expect(dry.code, dry.stderr).toBe(0);
    const estimate = JSON.parse(dry.stdout) as { tokens: number; usd: number; steps: number; within_budget: boolean };
    expect(estimate.within_budget).toBe(false);
    vi.stubEnv('TINKER_BASE_URL', local.url);
    const { code, stdout, stderr } = await run([...command, '--format', 'json']);
    expect(code, stderr).toBe(0);
    const { cost, steps } = JSON.parse(stdout) as { cost: Cost; steps: number };
    expect([estimate.tokens, estimate.steps]).toEqual([cost.trained, steps]);
    expect(estimate.usd).toBeCloseTo(cost.usd!, 12);
    // On the page and in the log: what it had cost at each step.
    expect(lines('run/metrics.jsonl').at(-1)).toMatchObject({ metrics: { 'cost/tokens': cost.tokens } });
    const told = await run(['billing', 'reconcile', path('run'), '--format', 'json']);
    expect(JSON.parse(told.stdout), told.stderr).toMatchObject({ agrees: true, billed: { trained: cost.trained } });
    expect((await run(['billing', 'reconcile', folder])).stderr).toMatch(/holds no costs/);
  });

  it('train --budget-tokens stops, saves, says why, and continues with a larger budget', async () => {
    const flags = ['-m', 'tinker-rx/tiny', '--rank', '4', '--batch-size', '2', '--ahead', '0', '--log', path('run')];
    const first = await run(['train', write('rows.jsonl', rows), ...flags, '--budget-tokens', '200']);
    expect(first.code, first.stderr).toBe(0);
    expect(first.stdout).toMatch(/Stopped\s+the budget of 200 tokens is spent/);
    expect(first.stdout).toMatch(/Cost\s+[\d,]+ tokens; no price for tinker-rx\/tiny/);
    expect(first.stdout).toMatch(/Checkpoint\s+tinker:/);
    expect(first.stderr).toMatch(/Continue with a larger budget: tinker-rx train --resume \S+ --budget-tokens 400\n/);
    const done = lines('run/metrics.jsonl').length;
    expect(done).toBeLessThan(12);
    const second = await run(['train', '--resume', path('run'), '--budget-tokens', '100000']);
    expect(second.code, second.stderr).toBe(0);
    const steps = lines('run/metrics.jsonl');
    expect(steps).toHaveLength(12);
    // The run's costs, not those of its last process.
    const tokens = steps.map(({ metrics }) => (metrics as Record<string, number>)['cost/tokens']!);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    const spent = lines('run/cost.jsonl').map(({ trained }) => trained as number);
    expect(spent.reduce((sum, each) => sum + each, 0)).toBe(tokens.at(-1));
  });

  it('warns where a budget in dollars cannot stop anything, and refuses a list that is none', async () => {
    const flags = ['-m', 'tinker-rx/tiny', '--rank', '4', '--log', path('run'), '--budget-usd', '1'];
    const { stderr } = await run(['train', write('rows.jsonl', rows.slice(0, 2)), ...flags]);
    expect(stderr).toMatch(
      /Warning: no price for tinker-rx\/tiny in the list of 2026-10-07: --budget-usd cannot stop it/,
    );
    expect(readPrices().models['Qwen/Qwen3-8B']).toBeDefined();
    expect(() => readPrices(write('wrong.json', { models: {} }))).toThrow('it needs asOf');
    expect(() => readPrices(write('date.json', { asOf: 'then', models: {} }))).toThrow('asOf is not a date');
    const free = { asOf: '2026-01-01', models: { m: { prefill: -1, sample: 1, train: 1 } } };
    expect(() => readPrices(write('minus.json', free))).toThrow('a price of m is not a number ≥ 0');
  });
});
