import { createHash } from 'node:crypto';
import { readdir, readFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstValueFrom, from, lastValueFrom, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ServiceClient, type TrainingClient } from '../../src/client/index.js';
import { LocalTinker } from '../../src/local/index.js';
import {
  addLosses,
  checkLoss,
  clippedPolicyGradient,
  defineLoss,
  entropyBonus,
  klToReference,
  softTargetsReverse,
  type TracedLoss,
} from '../../src/losses/index.js';
import { train } from '../../src/operators/index.js';
import type { Datum } from '../../src/wire/datum.js';
import { ModelInput } from '../../src/wire/modelInput.js';

const text = (words: string) => Array.from(Buffer.from(words));
const datum = (words: string, seed: number): Datum => {
  const tokens = text(words);
  const numbers = (scale: number, from_: number) =>
    Float32Array.from(tokens.slice(1), (_, place) => from_ + scale * ((0.618034 * (place + seed)) % 1));
  return {
    modelInput: ModelInput.fromInts(tokens.slice(0, -1)),
    lossFnInputs: {
      target_tokens: tokens.slice(1),
      weights: numbers(1, 0),
      mask: tokens.slice(1).map((_, place) => (place < 2 ? 0 : 1)),
      advantages: numbers(2, -1),
      logprobs: numbers(-2, -0.5),
      reference_logprobs: numbers(-2, -1),
    },
  };
};
const data = [datum('a small text', 1), datum('another one', 2), datum('and the third of them', 3)];
const soft: Datum[] = [
  {
    modelInput: ModelInput.fromInts(text('soft')),
    lossFnInputs: {
      target_tokens: [[111, 97, 0], [102, 101, 120], [116, 32, 0], [32, 46, 0]], // prettier-ignore
      weights: [[0.6, 0.3, 0], [0.5, 0.2, 0.1], [0.9, 0.05, 0], [0, 0, 0]], // prettier-ignore
    },
  },
];

const LOSSES: readonly [string, TracedLoss, readonly Datum[]][] = [
  [
    'focal',
    defineLoss(({ logprobs, weights }, ops) => ({
      loss: ops.weightedSum(ops.sub(1, logprobs.exp()).square().mul(logprobs), weights).neg(),
      metrics: { confidence: logprobs.exp().mean() },
    })),
    data,
  ],
  [
    'a clipped policy gradient with two regularizers',
    addLosses(
      clippedPolicyGradient(),
      klToReference({ coefficient: 0.05, estimator: 'k3' }),
      entropyBonus({ coefficient: 0.01 }),
    ),
    data,
  ],
  ['soft targets', softTargetsReverse(), soft],
];

/** A service with its folder, and a trainer of the same seed. */
async function open(customLossServerSide: boolean) {
  const folder = await mkdtemp(join(tmpdir(), 'traced-loss-'));
  const passes: string[] = [];
  const local = await LocalTinker.start({
    data: folder,
    flags: { customLossServerSide },
    onRequest: ({ endpoint }) => /forward|custom/.test(endpoint) && passes.push(endpoint),
  });
  const service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
  const close = async () => {
    await service.close();
    await local.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { folder, local, service, passes, close };
}
type Opened = Awaited<ReturnType<typeof open>>;

/** What the files of a checkpoint hold, as digests: weights and the optimizer's state. */
async function weightsIn(folder: string, name: string): Promise<readonly string[]> {
  const files = (await readdir(folder, { recursive: true })).filter(
    (file) => file.includes(name) && file.endsWith('.safetensors'),
  );
  const digest = async (file: string) =>
    createHash('sha256')
      .update(await readFile(join(folder, file)))
      .digest('hex');
  return Promise.all(files.map(digest));
}

describe('the same traced loss on the service and here', () => {
  let [there, here]: Opened[] = [];
  beforeAll(async () => {
    [there, here] = await Promise.all([open(true), open(false)]);
  });
  afterAll(() => Promise.all([there!.close(), here!.close()]));

  const trainer = ({ service }: Opened): PromiseLike<TrainingClient> =>
    service.createLoraTrainingClient({ baseModel: 'tinker-rx/tiny', rank: 4, seed: 5 });

  it.each(LOSSES)('%s: the same weights after ten steps, bit for bit', async (name, loss, batch) => {
    const learn = async (opened: Opened) => {
      const model = await trainer(opened);
      opened.passes.length = 0;
      const steps = await lastValueFrom(
        from(Array.from({ length: 10 }, () => batch)).pipe(
          train(model, { loss, adam: { learningRate: 5e-3 } }),
          toArray(),
        ),
      );
      const saved = `ten-${LOSSES.findIndex(([each]) => each === name)}`;
      await model.saveState(saved);
      return { steps, weights: await weightsIn(opened.folder, saved), passes: [...opened.passes] };
    };
    const [onService, inClient] = [await learn(there!), await learn(here!)];
    expect(onService.weights).toHaveLength(1);
    expect(inClient.weights).toEqual(onService.weights);
    expect(inClient.steps.map(({ lossSum }) => lossSum)).toEqual(onService.steps.map(({ lossSum }) => lossSum));
    expect(inClient.steps.at(-1)!.loss).toBeLessThan(inClient.steps[0]!.loss);
    // One upload and ten passes there, twenty passes here.
    expect(onService.passes.filter((path) => path === 'create_custom_loss')).toHaveLength(1);
    expect(onService.passes).toHaveLength(11);
    expect(inClient.passes).toHaveLength(20);
  });

  it.each(LOSSES)('%s: checkLoss finds nothing, on either', async (_, loss, batch) => {
    for (const opened of [there!, here!]) {
      const check = await firstValueFrom(checkLoss(loss, batch, { trainer: await trainer(opened) }));
      expect(check.worst!.error).toBeLessThan(1e-4);
      expect(check.trainer!.error).toBeLessThan(1e-9);
      expect(check.ok).toBe(true);
    }
  });
});
