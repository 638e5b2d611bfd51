import type { EvalRecord } from '../run/record.js';
import { fairCoinTwoSided, studentTwoSided } from './internal/distributions.js';
import { differenceInterval, type Interval, meanInterval } from './intervals.js';

/** Options of `compareEvals`. */
export interface CompareOptions {
  /** How sure the interval and the verdict are: between 0 and 1. Default 0.999: of 2,000 pairs of equal models one is called worse. */
  readonly confidence?: number;
  /** Differences up to this size are the same. Default 1e-9. */
  readonly tolerance?: number;
}

/** One example in both results. */
export interface EvalPair {
  /** The example's id. */
  readonly id: string;
  /** Its record in the earlier evaluation. */
  readonly before: EvalRecord;
  /** Its record in the later one. */
  readonly after: EvalRecord;
  /** The mean score after, less the mean score before. */
  readonly difference: number;
}

/** How two evaluations of the same examples differ. */
export interface EvalComparison {
  /** Examples that have a score in both; all means go over these. */
  readonly examples: number;
  /** Examples whose score is higher in the later evaluation. */
  readonly improved: number;
  /** Examples whose score is lower in the later evaluation. */
  readonly regressed: number;
  /** Examples with the same score in both. */
  readonly same: number;
  /** Examples of both that lack a score in one, or in both. */
  readonly errored: number;
  /** Examples that only one result has: they are not compared. */
  readonly onlyBefore: number;
  /** Examples that only the later evaluation has. */
  readonly onlyAfter: number;
  /** Mean score of the earlier evaluation, with its confidence interval. */
  readonly before: Interval;
  /** Mean score of the later evaluation, with its confidence interval. */
  readonly after: Interval;
  /** The mean difference, after less before. */
  readonly difference: Interval;
  /** How likely a difference at least so large is if there is none. */
  readonly pValue: number;
  /** McNemar's exact test where each example is right or wrong, else the paired t test. */
  readonly test: 'mcnemar' | 't';
  /** `same` means that no difference was found, not that there is none. */
  readonly verdict: 'better' | 'worse' | 'same';
  /** Regressions, the worst first. */
  readonly regressions: readonly EvalPair[];
  /** Improvements, the largest first. */
  readonly improvements: readonly EvalPair[];
}

/**
 * Compares two results of the same tasks, example by example.
 *
 * A verdict needs both: an interval of the difference without 0, and a test that agrees. Holds all records.
 */
export function compareEvals(
  before: Iterable<EvalRecord>,
  after: Iterable<EvalRecord>,
  { confidence = 0.999, tolerance = 1e-9 }: CompareOptions = {},
): EvalComparison {
  const old = new Map([...before].map((record) => [record.id, record]));
  const pairs: EvalPair[] = [];
  let [errored, onlyAfter] = [0, 0];
  for (const record of after) {
    const partner = old.get(record.id);
    old.delete(record.id);
    if (partner === undefined) onlyAfter++;
    else if (record.samples.length === 0 || partner.samples.length === 0) errored++;
    else pairs.push({ id: record.id, before: partner, after: record, difference: scoreOf(record) - scoreOf(partner) });
  }
  const regressions = pairs.filter((pair) => pair.difference < -tolerance).sort((a, b) => a.difference - b.difference);
  const improvements = pairs.filter((pair) => pair.difference > tolerance).sort((a, b) => b.difference - a.difference);
  const difference = differenceInterval(
    pairs.map((pair) => pair.difference),
    confidence,
  );
  const isBinary = pairs.every((pair) => isRightOrWrong(pair.before) && isRightOrWrong(pair.after));
  const pValue = isBinary
    ? fairCoinTwoSided(regressions.length, regressions.length + improvements.length)
    : pairedT(pairs);
  const differs = pValue < 1 - confidence;
  return {
    examples: pairs.length,
    ...{ improved: improvements.length, regressed: regressions.length },
    same: pairs.length - improvements.length - regressions.length,
    ...{ errored, onlyBefore: old.size, onlyAfter },
    before: meanInterval(
      pairs.map((pair) => scoreOf(pair.before)),
      confidence,
    ),
    after: meanInterval(
      pairs.map((pair) => scoreOf(pair.after)),
      confidence,
    ),
    ...{ difference, pValue, test: isBinary ? 'mcnemar' : 't' },
    verdict: differs && difference.high < 0 ? 'worse' : differs && difference.low > 0 ? 'better' : 'same',
    ...{ regressions, improvements },
  };
}

/** The mean score of an example that has samples. */
const scoreOf = ({ samples }: EvalRecord): number =>
  samples.reduce((sum, { score }) => sum + score, 0) / samples.length;

const isRightOrWrong = (record: EvalRecord): boolean => [0, 1].includes(scoreOf(record));

function pairedT(pairs: readonly EvalPair[]): number {
  const count = pairs.length;
  const mean = pairs.reduce((sum, { difference }) => sum + difference, 0) / count;
  const squares = pairs.reduce((sum, { difference }) => sum + (difference - mean) ** 2, 0);
  if (count < 2) return 1;
  if (squares === 0) return mean === 0 ? 1 : 0;
  return studentTwoSided(mean / Math.sqrt(squares / (count - 1) / count), count - 1);
}
