/** Intervals and tests of `tinker-rx/evals`, held against recordings of scipy (`evals_golden.py`). */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { compareEvals, differenceInterval, type EvalRecord, meanInterval, passAtK } from '../../src/evals/index.js';
import { pairedT } from '../../src/evals/statistics/internal/pairedTests.js';

interface Ends {
  readonly confidence: number;
  readonly low: number;
  readonly high: number;
}
const recorded = JSON.parse(readFileSync(new URL('recorded/evals.json', import.meta.url), 'utf8')) as {
  readonly means: readonly (Ends & {
    readonly name: string;
    readonly values: readonly number[];
    readonly mean: number;
  })[];
  readonly wilson: readonly (Ends & { readonly passed: number; readonly count: number })[];
  readonly mcnemar: readonly { readonly regressed: number; readonly improved: number; readonly pValue: number }[];
  readonly paired: readonly (Ends & {
    readonly before: readonly number[];
    readonly after: readonly number[];
    readonly mean: number;
    readonly pValue: number;
  })[];
  readonly passAtK: readonly {
    readonly samples: number;
    readonly passed: number;
    readonly k: number;
    readonly value: number;
  }[];
};
const relative = (found: number, wanted: number) => Math.abs(found - wanted) / Math.max(1e-300, Math.abs(wanted));
const recordsOf = (scores: readonly number[]): EvalRecord[] =>
  scores.map((score, index) => ({
    ...{ id: String(index), input: '', failures: [], durationMs: 0 },
    samples: [
      {
        ...{ index: 0, seed: 0, output: '', score, scores: { score }, promptTokens: 0, sampledTokens: 0 },
        ...{ stopReason: 'stop', durationMs: 0 },
      },
    ],
  }));

describe('held against scipy', () => {
  it.each(recorded.means)('t interval of $name at $confidence', ({ values, confidence, mean, low, high }) => {
    const found = differenceInterval(values, confidence);
    for (const [is, was] of [
      [found.mean, mean],
      [found.low, low],
      [found.high, high],
    ] as const)
      expect(relative(is, was)).toBeLessThan(1e-9);
  });

  it('the mean of shares is cut off at 0 and 1', () => {
    expect(meanInterval([0, 0, 0.1])).toMatchObject({ low: 0 });
    expect(meanInterval([1, 1, 0.9])).toMatchObject({ high: 1 });
    expect(meanInterval([-0.1, 0, 0.1]).low).toBeLessThan(-0.1);
  });

  it.each(recorded.wilson)('Wilson interval of $passed of $count at $confidence', ({ passed, count, ...wanted }) => {
    const values = Array.from({ length: count }, (_, index) => (index < passed ? 1 : 0));
    const found = meanInterval(values, wanted.confidence);
    expect(found.low).toBeCloseTo(wanted.low, 11);
    expect(found.high).toBeCloseTo(wanted.high, 11);
  });

  it.each(recorded.mcnemar)('McNemar of $regressed against $improved', ({ regressed, improved, pValue }) => {
    const both = [...Array.from({ length: regressed }, () => 1), ...Array.from({ length: improved }, () => 0), 1, 0];
    const after = [...both.slice(0, -2).map((score) => 1 - score), 1, 0];
    const found = compareEvals(recordsOf(both), recordsOf(after));
    expect(found).toMatchObject({ regressed, improved, same: 2, test: 'mcnemar' });
    expect(relative(found.pValue, pValue)).toBeLessThan(1e-9);
  });

  it.each(recorded.paired)('paired t at $confidence', ({ before, after, confidence, mean, low, high, pValue }) => {
    expect(compareEvals(recordsOf(before), recordsOf(after), { confidence }).test).toBe('t');
    const differences = before.map((score, index) => after[index]! - score);
    const found = pairedT(differences, 0, confidence);
    expect(relative(found.pValue, pValue)).toBeLessThan(1e-7);
    expect(found.difference.mean).toBeCloseTo(mean, 12);
    expect(found.difference.low).toBeCloseTo(low, 9);
    expect(found.difference.high).toBeCloseTo(high, 9);
  });

  it.each(recorded.passAtK)('pass@$k of $passed of $samples', ({ samples, passed, k, value }) => {
    expect(passAtK(samples, passed, k)).toBeCloseTo(value, 12);
  });
});
