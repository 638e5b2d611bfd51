import fc from 'fast-check';
import { config, from, map, of, take, throwError } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { train } from '../../src/operators/training/train.js';
import { rateOnPlateau } from '../../src/operators/training/rateOnPlateau.js';
import type { Step } from '../../src/operators/training/step.js';
import { keepsContract, throwing } from './contract.js';
import { datum } from './fakeTrainer.js';
import type { Trainable } from '../../src/operators/training/Trainable.js';

/** A trainer whose losses are these, at once. */
function trainerOf(losses: readonly number[]): Trainable {
  let next = 0;
  return {
    forwardBackward: () => of({ lossFnOutputType: '', lossFnOutputs: [], metrics: { 'loss:sum': losses[next++]! } }),
    optimStep: () => of({}),
  };
}

describe('rateOnPlateau', () => {
  it('turns the rate down when the loss has not improved for long enough, not below the least', () => {
    const losses = [5, 4, 4, 4, 4, 4, 4, 4];
    const { learningRate, watch } = rateOnPlateau(8, { patience: 2, factor: 0.25, least: 1 });
    const rates: number[] = [];
    from(losses)
      .pipe(
        map(() => [datum(2, 1)]),
        train(trainerOf(losses), { loss: 'cross_entropy', adam: { learningRate }, ahead: 0 }),
        watch,
        take(losses.length),
      )
      .subscribe((step) => rates.push(step.learningRate));
    expect(rates).toStrictEqual([8, 8, 8, 8, 2, 2, 1, 1]);
  });

  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map((_, index) => ({ index, loss: 1 }) as Step),
        rateOnPlateau(1, { patience: 2 }).watch,
      ),
    readsForThree: 3,
    throwing: () => (source) =>
      source.pipe(
        map((_, index) => ({ index, loss: 1 }) as Step),
        rateOnPlateau(1, { patience: 2, metric: throwing }).watch,
      ),
  });

  it('passes an error of the steps once, and reports none beside it', () => {
    vi.useFakeTimers();
    const reported = vi.fn();
    config.onUnhandledError = reported;
    const errors: unknown[] = [];
    throwError(() => 'failed')
      .pipe(rateOnPlateau(1, { patience: 1 }).watch)
      .subscribe({ error: (error) => errors.push(error) });
    vi.runAllTimers();
    config.onUnhandledError = null;
    vi.useRealTimers();
    expect([errors, reported.mock.calls]).toStrictEqual([['failed'], []]);
  });

  it('is never above the first rate, and falls by the factor once in every `patience` steps at most', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20), { maxLength: 60 }), fc.integer({ min: 1, max: 5 }), (losses, patience) => {
        const { learningRate, watch } = rateOnPlateau(1, { patience, factor: 0.5, least: 0.01 });
        let falls = 0;
        from(losses)
          .pipe(
            map((loss, index) => ({ index, loss }) as Step),
            watch,
          )
          .subscribe(({ index }) => {
            expect([1, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.01]).toContain(learningRate(index));
            falls = Math.round(Math.log2(1 / learningRate(index)));
            expect(falls).toBeLessThanOrEqual(Math.floor((index + 1) / patience) + 1);
          });
        const falling = losses.every((loss, place) => place === 0 || loss < losses[place - 1]!);
        if (falling) expect(falls).toBe(0);
      }),
      { numRuns: 300, seed: 31 },
    );
  });

  it.each([-1, NaN, Infinity])('refuses rate %s', (rate) => {
    expect(() => rateOnPlateau(rate, { patience: 1 })).toThrow(RangeError);
  });

  it.each([0, 1, NaN])('refuses factor %s', (factor) => {
    expect(() => rateOnPlateau(1, { patience: 1, factor })).toThrow(RangeError);
  });
});
