import { describe, expect, it } from 'vitest';
import { checkAtLeast, checkIntegers, checkPositive } from '../../../src/support/checks.js';

describe('checks of options', () => {
  it('name the option and the value that does not fit', () => {
    expect(() => checkIntegers({ size: 4, window: 0 }, 1)).toThrow(
      new RangeError('window must be an integer >= 1, got 0'),
    );
    expect(() => checkIntegers({ seed: 0.5 })).toThrow(new RangeError('seed must be an integer, got 0.5'));
    expect(() => checkAtLeast({ ahead: -1 }, 0)).toThrow(new RangeError('ahead must be >= 0, got -1'));
    expect(() => checkPositive({ limit: 0 })).toThrow(new RangeError('limit must be > 0, got 0'));
  });

  it('refuse NaN and what is no number', () => {
    for (const value of [NaN, undefined as unknown as number, {} as unknown as number]) {
      expect(() => checkIntegers({ value })).toThrow(RangeError);
      expect(() => checkAtLeast({ value }, 0)).toThrow(RangeError);
      expect(() => checkPositive({ value })).toThrow(RangeError);
    }
  });

  it('pass what fits', () => {
    checkIntegers({ a: 1, b: 2 }, 1);
    checkAtLeast({ ahead: Infinity }, 0);
    expect(() => checkPositive({ limit: 0.1 })).not.toThrow();
  });
});
