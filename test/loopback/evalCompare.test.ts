/** `eval compare` on answers that a model really gave: chance must not look like a difference, and a regression must be found. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { concat, from, lastValueFrom, map, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Renderer } from '../../src/chat/index.js';
import { type SamplingClient, ServiceClient, type TrainingClient } from '../../src/client/index.js';
import {
  answers,
  compareEvals,
  type EvalComparison,
  evaluateInto,
  type EvalRecord,
  exact,
} from '../../src/evals/index.js';
import { LocalTinker } from '../../src/local/index.js';
import { batch, repeatEpochs, toDatums, train } from '../../src/operators/index.js';
import { type Conversation, fromConversations, fromJsonl } from '../../src/sources/index.js';
import { run } from '../unit/cli/terminal.js';

const SEEDS = Array.from({ length: 20 }, (_, index) => index + 1);

const data = (name: string) => new URL(`../../examples/data/${name}`, import.meta.url);
const conversation = ({ question, answer }: { question: string; answer: string }): Conversation => ({
  messages: [
    { role: 'user', content: question },
    { role: 'assistant', content: answer },
  ],
});
const tasks$ = concat(
  fromConversations(data('questions.jsonl')),
  fromJsonl<{ question: string; answer: string }>(data('facts.jsonl')).pipe(map(conversation)),
);

describe('comparing evaluations of checkpoints', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tinker-rx-compare-'));
  let local: LocalTinker;
  let service: ServiceClient;
  let trainer: TrainingClient;
  let renderer: Renderer;
  let tasks: readonly Conversation[];
  /** Sampled from at temperature 1, the later one is right about every second time: that is where chance is largest. */
  let earlier: SamplingClient;
  let checkpoint: SamplingClient;

  beforeAll(async () => {
    local = await LocalTinker.start();
    service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
    trainer = await service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 16, seed: 1 });
    renderer = await trainer.getRenderer();
    tasks = await lastValueFrom(tasks$.pipe(toArray()));
    earlier = await checkpointAfter(2);
    checkpoint = await checkpointAfter(4);
  });
  afterAll(async () => {
    await service.close();
    await local.close();
    rmSync(folder, { recursive: true });
  });

  async function checkpointAfter(epochs: number): Promise<SamplingClient> {
    const batches = from(tasks).pipe(toDatums(renderer), batch({ size: 18 }), repeatEpochs({ epochs }));
    await lastValueFrom(batches.pipe(train(trainer, { loss: 'cross_entropy', adam: { learningRate: 1e-2 } })));
    const { path } = await trainer.saveWeightsForSampler(`after-${epochs}-more`);
    return service.createSamplingClient({ modelPath: path });
  }

  const file = (name: string) => join(folder, `${name}.jsonl`);
  const measure = (name: string, sampler: SamplingClient, seed: number): Promise<EvalRecord[]> =>
    lastValueFrom(
      from(tasks).pipe(
        evaluateInto(file(name), answers({ renderer }), {
          ...{ sampler, seed, samples: 4, scorers: [exact()] },
          samplingParams: { maxTokens: 12, temperature: 1 },
        }),
        toArray(),
      ),
    );
  const compare = async (before: string, after: string) => {
    const command = [
      'eval',
      'compare',
      file(before),
      file(after),
      '--fail-if-worse',
      '--confidence',
      '0.999',
      '--format',
      'json',
    ];
    const { code, stdout } = await run(command);
    return { code, ...(JSON.parse(stdout) as EvalComparison) };
  };
  /** As if one answer had been asked for: each example is right or wrong, and another test judges. */
  const firstOnly = (records: readonly EvalRecord[]) =>
    records.map((record) => ({ ...record, samples: record.samples.slice(0, 1) }));

  it('two runs of one checkpoint are the same, with each of twenty seeds', async () => {
    for (const seed of SEEDS) {
      const before = await measure(`before-${seed}`, checkpoint, seed);
      const after = await measure(`after-${seed}`, checkpoint, 1000 + seed);
      const found = await compare(`before-${seed}`, `after-${seed}`);
      expect([found.code, found.verdict, found.test], `seed ${seed}`).toEqual([0, 'same', 't']);
      const ofOne = compareEvals(firstOnly(before), firstOnly(after), { confidence: 0.999 });
      expect([ofOne.verdict, ofOne.test], `seed ${seed}`).toEqual(['same', 'mcnemar']);
      // The two do differ: it is not that nothing was random.
      expect(found.examples).toBe(36);
      expect(found.improved).toBeGreaterThan(3);
      expect(found.regressed).toBeGreaterThan(3);
    }
  });

  it('an earlier checkpoint is found to be worse, and the later one better', async () => {
    for (const seed of SEEDS.slice(0, 3)) {
      await measure(`earlier-${seed}`, earlier, 2000 + seed);
      const found = await compare(`before-${seed}`, `earlier-${seed}`);
      expect([found.code, found.verdict], `seed ${seed}`).toEqual([1, 'worse']);
      expect(found.difference.high).toBeLessThan(-0.05);
      expect(await compare(`earlier-${seed}`, `before-${seed}`)).toMatchObject({ code: 0, verdict: 'better' });
    }
  });
});
