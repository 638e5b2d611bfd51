import { lastValueFrom, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  addLosses,
  checkLoss,
  type CheckLossOptions,
  defineLoss,
  dpo,
  entropyBonus,
  evaluateLoss,
  policyGradient,
  type LossChecker,
  type TracedLoss,
} from '../../../src/losses/index.js';
import type { Datum } from '../../../src/wire/datum.js';
import { ModelInput } from '../../../src/wire/modelInput.js';
import { TensorData } from '../../../src/wire/tensor.js';

const datum = (length: number): Datum => ({
  modelInput: ModelInput.fromInts(Array.from({ length }, (_, i) => i + 1)),
  lossFnInputs: {
    target_tokens: Array.from({ length }, (_, i) => i + 2),
    weights: Array.from({ length }, (_, i) => (i === 0 ? 0 : 1)),
    advantages: Array.from({ length }, (_, i) => 1 - i),
    logprobs: Array.from({ length }, () => -1),
    reference_logprobs: Array.from({ length }, (_, i) => -1 - i / 7),
  },
});
const data = [datum(4), datum(5)];
const check = (loss: TracedLoss, options: CheckLossOptions = {}, given = data) =>
  lastValueFrom(checkLoss(loss, given, options));
const focal = defineLoss(({ logprobs, weights }, ops) => ({
  loss: ops.weightedSum(ops.sub(1, logprobs.exp()).square().mul(logprobs), weights).neg(),
  metrics: { confidence: logprobs.exp().mean() },
}));

/** Finds every token half as likely as the last, and changes the numbers of a loss as told. */
const trainerThat = (change: (metrics: Record<string, number>) => Record<string, number>) => {
  const asked: string[] = [];
  const trainer: LossChecker = {
    forward: (given, loss) => {
      asked.push(typeof loss === 'string' ? loss : loss.name);
      const logprobs = given.map(({ lossFnInputs }) =>
        Float32Array.from(lossFnInputs['weights'] as number[], (_, place) => -0.7 * (place + 1)),
      );
      const lossFnOutputs = logprobs.map((values) => ({
        logprobs: new TensorData({ dtype: 'float32', data: values }),
      }));
      const { loss: value, metrics } = evaluateLoss(typeof loss === 'string' ? focal : loss, given, logprobs);
      return of({ lossFnOutputType: 'TensorData', lossFnOutputs, metrics: change({ 'loss:sum': value, ...metrics }) });
    },
  };
  return { trainer, asked };
};

describe('checkLoss', () => {
  it('agrees with finite differences, without a trainer and without asking one', async () => {
    const { ok, loss, metrics, worst, trainer } = await check(focal);
    expect(ok).toBe(true);
    expect(loss).toBeGreaterThan(0);
    expect(metrics['custom/confidence:mean']).toBeGreaterThan(0);
    expect(worst!.error).toBeLessThan(1e-8);
    expect(trainer).toBeUndefined();
  });

  it('holds detached values still, so that a gradient made on purpose is right', async () => {
    const surrogate = defineLoss(({ logprobs, advantages }, ops) =>
      ops.weightedSum(logprobs.exp().detach().mul(logprobs), advantages).neg(),
    );
    for (const loss of [surrogate, addLosses(policyGradient(), entropyBonus({ coefficient: 0.3 })), dpo()]) {
      expect(await check(loss)).toMatchObject({ ok: true });
    }
  });

  it('finds a kink that a logprob lies on, and says where', async () => {
    const kink = defineLoss(({ logprobs }) => logprobs.add(1).relu().sum());
    const { ok, worst } = await check(kink, { logprobs: [[-2, -1, -0.5, -3], [-2, -2, -2, -2, -2]] }); // prettier-ignore
    expect(ok).toBe(false);
    expect(worst).toMatchObject({ datum: 0, place: 1, derivative: 0 });
    expect(worst!.finiteDifference).toBeCloseTo(0.5, 6);
  });

  it('compares with what the trainer makes of it, and asks for a forward pass only', async () => {
    const same = trainerThat((metrics) => metrics);
    const cold = checkLoss(focal, data, { trainer: same.trainer });
    expect(same.asked).toEqual([]);
    const { ok, trainer } = await lastValueFrom(cold);
    expect(ok).toBe(true);
    expect(trainer!.error).toBeLessThan(1e-12);
    expect(same.asked).toEqual(['cross_entropy', 'custom_loss']);
  });

  it.each<[string, (metrics: Record<string, number>) => Record<string, number>]>([
    ['another loss', (metrics) => ({ ...metrics, 'loss:sum': metrics['loss:sum']! * 1.01 })],
    ['no loss', ({ 'loss:sum': _, ...metrics }) => metrics],
    ['another metric', (metrics) => ({ ...metrics, 'custom/confidence:mean': 0.9 })],
    ['no metric', ({ 'loss:sum': loss }) => ({ 'loss:sum': loss! })],
  ])('is not ok where the trainer gives %s', async (_, change) => {
    const { ok, trainer } = await check(focal, { trainer: trainerThat(change).trainer });
    expect(ok).toBe(false);
    expect(trainer!.error).toBeGreaterThan(1e-3);
  });

  it('names an input that the data lacks, and refuses options out of range at the call', async () => {
    const bare = { ...data[0]!, lossFnInputs: { target_tokens: [1, 2, 3, 4] } };
    await expect(check(focal, {}, [bare])).rejects.toThrow('data[0].lossFnInputs.weights is missing');
    expect(() => checkLoss(focal, data, { tolerance: 0 })).toThrow(RangeError);
    expect(() => checkLoss(focal, data, { places: 0 })).toThrow(RangeError);
  });
});
