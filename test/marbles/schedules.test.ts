import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { constant, cosine, linear, type Schedule } from '../../src/operators/training/schedules.js';

const first = (schedule: Schedule, count: number) => Array.from({ length: count }, (_, step) => schedule(step));

describe('schedules', () => {
  it('constant stays, after the warm-up', () => {
    expect(first(constant(2), 3)).toStrictEqual([2, 2, 2]);
    expect(first(constant(2, { warmUp: 4 }), 6)).toStrictEqual([0.5, 1, 1.5, 2, 2, 2]);
  });

  it('linear falls evenly to its end and stays there', () => {
    expect(first(linear(1, { steps: 4 }), 6)).toStrictEqual([1, 0.75, 0.5, 0.25, 0, 0]);
    expect(first(linear(1, { steps: 4, end: 0.5 }), 6)).toStrictEqual([1, 0.875, 0.75, 0.625, 0.5, 0.5]);
    expect(first(linear(1, { steps: 6, warmUp: 2 }), 7)).toStrictEqual([0.5, 1, 1, 0.75, 0.5, 0.25, 0]);
  });

  it('cosine is halfway down in the middle', () => {
    const schedule = cosine(1, { steps: 10, end: 0.2 });
    expect(schedule(0)).toBe(1);
    expect(schedule(5)).toBeCloseTo(0.6, 12);
    expect(schedule(10)).toBeCloseTo(0.2, 12);
    expect(schedule(99)).toBeCloseTo(0.2, 12);
  });

  it('stays between end and peak, and never rises after the warm-up', () => {
    const options = fc.record({
      steps: fc.integer({ min: 2, max: 50 }),
      warmUp: fc.nat(1),
      end: fc.constantFrom(0, 0.1),
    });
    fc.assert(
      fc.property(options, fc.constantFrom(linear, cosine), ({ steps, warmUp, end }, make) => {
        const rates = first(make(1, { steps, warmUp, end }), steps + 5).slice(warmUp);
        for (const [step, rate] of rates.entries()) {
          expect(rate).toBeLessThanOrEqual(rates[step - 1] ?? 1);
          expect(rate).toBeGreaterThanOrEqual(end - 1e-12);
        }
        expect(rates.at(-1)).toBeCloseTo(end, 12);
      }),
    );
  });

  it.each([
    [() => constant(NaN), 'the rate must be finite and >= 0, got NaN'],
    [() => constant(1, { warmUp: -1 }), 'warmUp must be an integer >= 0, got -1'],
    [() => linear(1, { steps: 0 }), 'steps must be an integer >= 1, got 0'],
    [() => cosine(1, { steps: 5, warmUp: 5 }), 'warmUp must be less than steps (5), got 5'],
    [() => linear(1, { steps: 5, end: -1 }), 'end must be finite and >= 0, got -1'],
  ])('refuses %s', (make, message) => {
    expect(make).toThrow(new RangeError(message));
  });
});
