/** `decide` on the embedded service: what one request says is what each label scores by itself, and 200 rows teach it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { filter, lastValueFrom, skip, take, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { labelTokens } from '../../src/chat/datum/labels.js';
import type { Renderer } from '../../src/chat/index.js';
import { ServiceClient, type TrainingClient } from '../../src/client/index.js';
import { decisions, type EvalSummary, summarize } from '../../src/evals/index.js';
import { LocalTinker } from '../../src/local/index.js';
import { batch, decide, repeatEpochs, toDecisions, train } from '../../src/operators/index.js';
import { fromJsonl } from '../../src/sources/index.js';
import { run } from '../unit/cli/terminal.js';

interface Ticket {
  readonly text: string;
  readonly label: string;
}

const file = new URL('../../examples/data/tickets.jsonl', import.meta.url).pathname;
const labels = ['billing', 'fault', 'other'];
const rows = fromJsonl<Ticket>(file);
const heldOut = rows.pipe(skip(200));

describe('decide', () => {
  let local: LocalTinker;
  let service: ServiceClient;
  let trainer: TrainingClient;
  let renderer: Renderer;
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

  const measure = async (): Promise<EvalSummary> => {
    const sampler = await trainer.saveWeightsAndGetSamplingClient();
    return lastValueFrom(heldOut.pipe(decisions<Ticket>({ sampler, renderer, labels }), summarize()));
  };

  it('says in one request what each label scores by itself', async () => {
    const sampler = await service.createSamplingClient({ baseModel: 'tinker-rx/tiny' });
    let requests = 0;
    const counting = service.events$.pipe(filter((event) => event.type === 'tokens-used')).subscribe(() => requests++);
    const decided = await lastValueFrom(
      heldOut.pipe(take(20), decide<Ticket, typeof sampler>(sampler, { renderer, labels }), toArray()),
    );
    counting.unsubscribe();
    expect(requests).toBe(20);
    const tokens = labelTokens(renderer, labels);
    for (const { item, probabilities, mass } of decided) {
      const prompt = renderer.buildGenerationPrompt([{ role: 'user', content: item.text }]);
      const alone = await Promise.all(
        [...tokens].map(async (token) => Math.exp((await sampler.computeLogprobs(prompt.appendInt(token))).at(-1)!)),
      );
      const total = alone.reduce((sum, share) => sum + share, 0);
      expect(Math.abs(mass - total)).toBeLessThan(1e-5);
      labels.forEach((label, place) =>
        expect(Math.abs(probabilities[label]! - alone[place]! / total)).toBeLessThan(1e-5),
      );
    }
  });

  it('is accurate and calibrated after training on 200 rows', async () => {
    const before = await measure();
    const batches = rows.pipe(
      take(200),
      toDecisions<Ticket>({ renderer, labels }),
      repeatEpochs({ epochs: 4 }),
      batch({ size: 20 }),
    );
    await lastValueFrom(batches.pipe(train(trainer, { loss: 'cross_entropy', adam: { learningRate: 3e-3 } })));
    const after = await measure();
    expect(before.examples).toBe(60);
    expect(before.decisions!.accuracy).toBeLessThan(0.5);
    expect(before.decisions!.calibrationError).toBeGreaterThan(0.3);
    expect(after.decisions!.accuracy).toBeGreaterThan(0.9);
    expect(after.decisions!.calibrationError).toBeLessThan(0.1);
    expect(after.scores['logprob']!.mean).toBeGreaterThan(before.scores['logprob']!.mean);
  });

  it('learns soft labels: the confidence becomes the share that was given', async () => {
    const soft = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 16, seed: 2 });
    const row = { text: 'Is it raining?', label: { yes: 0.7, no: 0.3 } };
    const options = { renderer, labels: ['yes', 'no'] };
    const source = rows.pipe(take(1));
    const batches = source.pipe(
      toDecisions({ ...options, ask: () => row.text, label: () => row.label }),
      batch({ size: 1 }),
      repeatEpochs({ epochs: 80 }),
    );
    await lastValueFrom(batches.pipe(train(soft, { loss: 'cross_entropy', adam: { learningRate: 3e-3 } })));
    const sampler = await soft.saveWeightsAndGetSamplingClient();
    const decision = await lastValueFrom(source.pipe(decide(sampler, { ...options, ask: () => row.text })));
    expect(decision.label).toBe('yes');
    expect(decision.confidence).toBeCloseTo(0.7, 1);
    expect(decision.mass).toBeGreaterThan(0.9);
  });

  it('is an evaluation of the command line, with a table of thresholds', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tinker-rx-decide-'));
    vi.stubEnv('NO_COLOR', '1');
    vi.stubEnv('TINKER_BASE_URL', local.url);
    vi.stubEnv('TINKER_API_KEY', local.apiKey);
    try {
      const command = ['eval', file, '-m', 'tinker-rx/tiny', '--limit', '30', '--labels', 'billing, fault, other'];
      const { code, stdout, stderr } = await run([...command, '--out', join(folder, 'a.jsonl')]);
      expect(code, stderr).toBe(0);
      expect(stdout).toMatch(/accuracy\s+0\.\d{3} \(0\.\d{3} to 0\.\d{3}\), 95 %/);
      expect(stdout).toMatch(/Calibration error\s+0\.\d{4}/);
      expect(stdout).toMatch(/confidence ≥ 0\.5\s+\d\.\d{3} right, \d+ % of rows \(\d+\)/);
      const again = await run([...command, '--out', join(folder, 'b.jsonl'), '--format', 'json']);
      const { decisions: found } = JSON.parse(again.stdout) as EvalSummary;
      expect(stdout).toContain(found!.calibrationError.toFixed(4));
      const compared = await run(['eval', 'compare', join(folder, 'a.jsonl'), join(folder, 'b.jsonl')]);
      expect(compared.stdout).toMatch(/no difference found/);
    } finally {
      vi.unstubAllEnvs();
      rmSync(folder, { recursive: true });
    }
  });
});
