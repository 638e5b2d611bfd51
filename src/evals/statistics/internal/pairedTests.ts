import type { Interval } from '../intervals.js';
import { binomialInterval, fairCoinTwoSided, studentCritical, studentTwoSided } from './distributions.js';

/** A mean difference with its interval and the p value of the same test: the interval holds 0 exactly where p ≥ 1 − confidence. */
export interface PairedTest {
  readonly difference: Interval;
  readonly pValue: number;
}

/**
 * McNemar's exact test. The interval is that of the share of improvements among the examples that changed, times that of the share of
 * examples that changed, both by Clopper and Pearson: it has a width also where all examples went one way, or none changed.
 */
export function mcnemar(improved: number, regressed: number, examples: number, confidence: number): PairedTest {
  const changed = improved + regressed;
  const up = binomialInterval(improved, changed, confidence);
  const share = binomialInterval(changed, examples, confidence);
  const scaled = (lean: number, away: boolean) => lean * (away ? share.high : share.low);
  const [low, high] = [2 * up.low - 1, 2 * up.high - 1];
  return {
    difference: {
      mean: (improved - regressed) / examples,
      low: scaled(low, low < 0),
      high: scaled(high, high > 0),
      count: examples,
    },
    pValue: fairCoinTwoSided(regressed, changed),
  };
}

/**
 * The paired t test. The differences are taken to vary at least as if one of them were off by `scale`, so that a few equal ones are not
 * taken for certainty.
 */
export function pairedT(differences: readonly number[], scale: number, confidence: number): PairedTest {
  const count = differences.length;
  const mean = differences.reduce((sum, difference) => sum + difference, 0) / count;
  if (count < 2) return { difference: { mean, low: -Infinity, high: Infinity, count }, pValue: 1 };
  const squares = differences.reduce((sum, difference) => sum + (difference - mean) ** 2, 0);
  const error = Math.sqrt(Math.max(squares, scale * scale) / (count - 1) / count);
  const half = studentCritical(confidence, count - 1) * error;
  return {
    difference: { mean, low: mean - half, high: mean + half, count },
    pValue: studentTwoSided(mean / error, count - 1),
  };
}

/** The fewest examples that can show a difference: where all of them go one way, chance does so with 2 · ½ⁿ. */
export function fewestExamples(confidence: number): number {
  let count = 1;
  while (2 * 0.5 ** count >= 1 - confidence) count++;
  return count;
}
