import { describe, expect, it } from 'vitest';
import { calibrationOf } from '../../../src/evals/index.js';

const decided = (confidence: number, correct: boolean) => ({ confidence, correct });

describe('calibrationOf', () => {
  it('weighs the gap between confidence and accuracy by bin', () => {
    // Two bins: 0.9 (one of two right, gap 0.4) and 0.6 (right, gap 0.4).
    const { accuracy, confidence, calibrationError } = calibrationOf([
      decided(0.9, true),
      decided(0.9, false),
      decided(0.6, true),
    ]);
    expect(accuracy).toBeCloseTo(2 / 3, 12);
    expect(confidence).toBeCloseTo(0.8, 12);
    expect(calibrationError).toBeCloseTo(0.4, 12);
  });

  it('is 0 where decisions are right as often as they are sure, and a confidence of 1 has a bin', () => {
    const sure = [decided(1, true), decided(1, true)];
    const half = [decided(0.5, true), decided(0.5, false)];
    expect(calibrationOf([...sure, ...half]).calibrationError).toBe(0);
    expect(calibrationOf([decided(1, false)]).calibrationError).toBe(1);
  });

  it('tells coverage and accuracy of each threshold', () => {
    const { thresholds } = calibrationOf([decided(0.5, false), decided(0.8, true)], { thresholds: [0.5, 0.8, 0.9] });
    expect(thresholds).toStrictEqual([
      { threshold: 0.5, coverage: 1, accuracy: 0.5, count: 2 },
      { threshold: 0.8, coverage: 0.5, accuracy: 1, count: 1 },
      { threshold: 0.9, coverage: 0, accuracy: NaN, count: 0 },
    ]);
  });

  it('refuses bins that are no count', () => {
    expect(() => calibrationOf([], { bins: 0 })).toThrow('bins must be an integer >= 1, got 0');
  });
});
