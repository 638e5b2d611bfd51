import { checkIntegers } from '../../support/checks.js';

/** How sure a decision was, and whether it was right. */
export interface Decided {
  /** The probability of the label that was chosen, from 0 to 1. */
  readonly confidence: number;
  /** Whether it was the right one. */
  readonly correct: boolean;
}

/** What happens if only decisions of some confidence are taken. */
export interface Threshold {
  /** Decisions of at least this confidence are taken. */
  readonly threshold: number;
  /** The share of all decisions that is taken, from 0 to 1. */
  readonly coverage: number;
  /** The share of these that is right; NaN if none is taken. */
  readonly accuracy: number;
  /** How many are taken. */
  readonly count: number;
}

/** How far the confidence of decisions can be trusted. */
export interface Calibration {
  /** The share that is right. */
  readonly accuracy: number;
  /** The mean confidence. */
  readonly confidence: number;
  /** Expected calibration error: how far confidence and accuracy are apart, the mean over decisions, by bins of confidence. */
  readonly calibrationError: number;
  /** What to expect at each threshold. */
  readonly thresholds: readonly Threshold[];
}

/** Options of `calibrationOf`. */
export interface CalibrationOptions {
  /** Bins of equal width between 0 and 1: an integer ≥ 1. Default 10. */
  readonly bins?: number;
  /** Which thresholds are listed. Default: 0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99. */
  readonly thresholds?: readonly number[];
}

const THRESHOLDS = [0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99];

/** Accuracy, calibration error and the table of thresholds of decisions. Of no decisions, all are NaN. */
export function calibrationOf(
  decided: readonly Decided[],
  { bins = 10, thresholds = THRESHOLDS }: CalibrationOptions = {},
): Calibration {
  checkIntegers({ bins }, 1);
  const count = decided.length;
  const gaps = new Float64Array(bins);
  for (const { confidence, correct } of decided)
    gaps[Math.min(bins - 1, Math.floor(confidence * bins))]! += confidence - (correct ? 1 : 0);
  const right = (of: readonly Decided[]): number => of.filter(({ correct }) => correct).length / of.length;
  return {
    accuracy: right(decided),
    confidence: decided.reduce((sum, { confidence }) => sum + confidence, 0) / count,
    calibrationError: gaps.reduce((sum, gap) => sum + Math.abs(gap), 0) / count,
    thresholds: thresholds.map((threshold) => {
      const taken = decided.filter(({ confidence }) => confidence >= threshold);
      return { threshold, coverage: taken.length / count, accuracy: right(taken), count: taken.length };
    }),
  };
}
