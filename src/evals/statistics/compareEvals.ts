import type { EvalRecord } from '../run/record.js';
import { checkConfidence } from './internal/checkConfidence.js';
import { fewestExamples, mcnemar, pairedT } from './internal/pairedTests.js';
import { type Interval, meanInterval } from './intervals.js';

/** Options of `compareEvals`. */
export interface CompareOptions {
  /** How sure the interval and the verdict are: between 0 and 1. Default 0.95: of 40 pairs of equal models one is called worse. */
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

/** What a comparison of two evaluations says of the later one. */
export type EvalVerdict = 'better' | 'worse' | 'same' | 'too-few';

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
  /** Of these, examples that have a score before and none after. */
  readonly lost: number;
  /** Examples that only one result has: they are not compared. */
  readonly onlyBefore: number;
  /** Examples that only the later evaluation has. */
  readonly onlyAfter: number;
  /** Mean score of the earlier evaluation, with its confidence interval. */
  readonly before: Interval;
  /** Mean score of the later evaluation, with its confidence interval. */
  readonly after: Interval;
  /** The mean difference, after less before, with the interval of the same test as the verdict; without ends where examples are too few. */
  readonly difference: Interval;
  /** How likely a difference at least so large is if there is none. */
  readonly pValue: number;
  /** McNemar's exact test where each example is right or wrong, else the paired t test. */
  readonly test: 'mcnemar' | 't';
  /** `same` means that no difference was found, not that there is none; `too-few` that no number of changes could show one. */
  readonly verdict: EvalVerdict;
  /** The verdict if each lost example had the lowest score after: 0, or the lowest there is. */
  readonly verdictWithLost: EvalVerdict;
  /** How many examples a verdict needs at least, at this confidence. */
  readonly needed: number;
  /** Regressions, the worst first. */
  readonly regressions: readonly EvalPair[];
  /** Improvements, the largest first. */
  readonly improvements: readonly EvalPair[];
}

/**
 * Compares two results of the same tasks, example by example.
 *
 * The verdict and the interval of the difference come from one test: `better` or `worse` where the interval does not hold 0. Where there
 * are fewer examples than any verdict needs, it is `too-few`. Holds all records.
 */
export function compareEvals(
  before: Iterable<EvalRecord>,
  after: Iterable<EvalRecord>,
  { confidence = 0.95, tolerance = 1e-9 }: CompareOptions = {},
): EvalComparison {
  checkConfidence(confidence);
  const old = new Map([...before].map((record) => [record.id, record]));
  const pairs: EvalPair[] = [];
  const lost: number[] = [];
  let [errored, onlyAfter] = [0, 0];
  for (const record of after) {
    const partner = old.get(record.id);
    old.delete(record.id);
    if (partner === undefined) onlyAfter++;
    else if (record.samples.length === 0 || partner.samples.length === 0) {
      errored++;
      if (partner.samples.length > 0) lost.push(scoreOf(partner));
    } else
      pairs.push({ id: record.id, before: partner, after: record, difference: scoreOf(record) - scoreOf(partner) });
  }
  const regressions = pairs.filter((pair) => pair.difference < -tolerance).sort((a, b) => a.difference - b.difference);
  const improvements = pairs.filter((pair) => pair.difference > tolerance).sort((a, b) => b.difference - a.difference);
  const scores = pairs.map((pair): ScorePair => [scoreOf(pair.before), scoreOf(pair.after)]);
  const lowest = scores.flat().reduce((least, score) => Math.min(least, score), 0);
  const { verdict, difference, pValue, test } = judged(scores, confidence, tolerance);
  return {
    examples: pairs.length,
    ...{ improved: improvements.length, regressed: regressions.length },
    same: pairs.length - improvements.length - regressions.length,
    ...{ errored, lost: lost.length, onlyBefore: old.size, onlyAfter, needed: fewestExamples(confidence) },
    before: meanInterval(
      scores.map(([score]) => score),
      confidence,
    ),
    after: meanInterval(
      scores.map(([, score]) => score),
      confidence,
    ),
    ...{ difference, pValue, test, verdict },
    verdictWithLost: judged([...scores, ...lost.map((score): ScorePair => [score, lowest])], confidence, tolerance)
      .verdict,
    ...{ regressions, improvements },
  };
}

type ScorePair = readonly [before: number, after: number];

function judged(
  scores: readonly ScorePair[],
  confidence: number,
  tolerance: number,
): Pick<EvalComparison, 'difference' | 'pValue' | 'test' | 'verdict'> {
  if (scores.length === 0) {
    return { difference: { mean: NaN, low: NaN, high: NaN, count: 0 }, pValue: 1, test: 'mcnemar', verdict: 'too-few' };
  }
  const differences = scores.map(([was, is]) => (Math.abs(is - was) <= tolerance ? 0 : is - was));
  const isBinary = scores.flat().every((score) => score === 0 || score === 1);
  const { difference, pValue } = isBinary
    ? mcnemar(
        differences.filter((each) => each > 0).length,
        differences.filter((each) => each < 0).length,
        scores.length,
        confidence,
      )
    : pairedT(differences, scaleOf(scores, differences), confidence);
  const test = isBinary ? 'mcnemar' : 't';
  if (scores.length < fewestExamples(confidence)) {
    return { difference: { ...difference, low: -Infinity, high: Infinity }, pValue, test, verdict: 'too-few' };
  }
  const verdict = difference.high < 0 ? 'worse' : difference.low > 0 ? 'better' : 'same';
  return { difference, pValue, test, verdict };
}

/** How far an example may be expected to move: as far as one did; where none did, as far as scores are apart. */
function scaleOf(scores: readonly ScorePair[], differences: readonly number[]): number {
  const most = differences.reduce((largest, difference) => Math.max(largest, Math.abs(difference)), 0);
  if (most > 0) return most;
  const all = scores.flat();
  const [least, largest] = [Math.min, Math.max].map((pick) => all.reduce((a, b) => pick(a, b)));
  return largest! - least! || 1;
}

/** The mean score of an example that has samples. */
const scoreOf = ({ samples }: EvalRecord): number =>
  samples.reduce((sum, { score }) => sum + score, 0) / samples.length;
