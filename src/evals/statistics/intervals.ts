import { checkConfidence } from './internal/checkConfidence.js';
import { normalCritical, studentCritical } from './internal/distributions.js';

/** A mean, and between what the true one lies with the confidence that was asked for. */
export interface Interval {
  /** The mean. */
  readonly mean: number;
  /** Lower end of the confidence interval. */
  readonly low: number;
  /** Upper end of the confidence interval. */
  readonly high: number;
  /** How many examples it is of. */
  readonly count: number;
}

/**
 * The mean of one value per example, with its confidence interval: Wilson's for values of 0 and 1, else Student's t,
 * cut off at 0 and 1 if no value lies beyond.
 *
 * Fewer than two values, if they are not 0 or 1, give an interval without ends.
 */
export function meanInterval(values: readonly number[], confidence = 0.95): Interval {
  checkConfidence(confidence);
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  if (count === 0) return { mean: NaN, low: NaN, high: NaN, count };
  // Where all are right, or all wrong, t would claim to be certain.
  if (values.every((value) => value === 0 || value === 1)) return wilson(mean, count, confidence);
  const { low, high } = studentInterval(values, mean, confidence);
  const isShare = values.every((value) => value >= 0 && value <= 1);
  return isShare ? { mean, low: Math.max(0, low), high: Math.min(1, high), count } : { mean, low, high, count };
}

/** The mean of differences, by Student's t. */
export function differenceInterval(differences: readonly number[], confidence = 0.95): Interval {
  checkConfidence(confidence);
  const mean = differences.reduce((sum, value) => sum + value, 0) / differences.length;
  if (differences.length === 0) return { mean: NaN, low: NaN, high: NaN, count: 0 };
  return studentInterval(differences, mean, confidence);
}

function studentInterval(values: readonly number[], mean: number, confidence: number): Interval {
  const count = values.length;
  if (count < 2) return { mean, low: -Infinity, high: Infinity, count };
  const varied = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  // Equal values are no certainty: as if one of them were off by as much as it may.
  const squares = varied === 0 ? Math.max(Math.abs(mean), Math.abs(1 - mean)) ** 2 : varied;
  const half = studentCritical(confidence, count - 1) * Math.sqrt(squares / (count - 1) / count);
  return { mean, low: mean - half, high: mean + half, count };
}

function wilson(share: number, count: number, confidence: number): Interval {
  const z = normalCritical(confidence);
  const scale = 1 + (z * z) / count;
  const middle = (share + (z * z) / (2 * count)) / scale;
  const half = (z / scale) * Math.sqrt((share * (1 - share)) / count + (z * z) / (4 * count * count));
  return { mean: share, low: Math.max(0, middle - half), high: Math.min(1, middle + half), count };
}
