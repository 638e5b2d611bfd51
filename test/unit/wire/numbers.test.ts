import { describe, expect, it } from 'vitest';
import * as numbers from '../../../src/wire/number.js';
import { expectDecoded, expectRefused } from './decoding.js';

const { Base64Bytes, Floats, Tokens, firstBadToken } = numbers;

describe('numbers', () => {
  it.each([
    ['Finite', 'a finite number', [0, -1.5, 1e308], [NaN, Infinity, '1', null]],
    ['Integer', 'an integer', [0, -5, 2 ** 53 - 1], [1.5, NaN, 2 ** 53]],
    ['NonNegativeInteger', 'an integer ≥ 0', [0, 7], [-1, 0.5]],
    ['PositiveInteger', 'an integer ≥ 1', [1, 7], [0, 1.5]],
    ['NonNegative', 'a finite number ≥ 0', [0, 1e-4], [-1e-9, NaN, Infinity]],
    ['Positive', 'a finite number > 0', [1e-12], [0, -1, NaN]],
    ['Fraction', 'a number in [0, 1)', [0, 0.999], [1, -0.1, NaN]],
    ['Probability', 'a number in (0, 1]', [1, 0.1], [0, 1.1, NaN]],
    ['TtlSeconds', 'a TTL from 3600 seconds to ten years', [3600, 315_360_000], [3599, 315_360_001, 3600.5]],
  ] as const)('%s is %s', (name, said, good, bad) => {
    const codec = numbers[name];
    for (const value of good) {
      expect(codec.is(value)).toBe(true);
      expectDecoded(codec, value, value);
      expect(codec.encode(value)).toBe(value);
    }
    for (const value of bad) {
      expect(codec.is(value)).toBe(false);
      expectRefused(codec, value, `expected ${said}`);
    }
  });
});

describe('Tokens', () => {
  it('is an Int32Array of ids', () => {
    expect(Tokens.is(Int32Array.of(0, 1, 2 ** 31 - 1))).toBe(true);
    expect(Tokens.is(Int32Array.of(1, -1))).toBe(false);
    expect(Tokens.is([1, 2])).toBe(false);
  });

  it('decodes lists and typed arrays, and names the first entry that is none', () => {
    expectDecoded(Tokens, [0, 5, 2 ** 31 - 1], Int32Array.of(0, 5, 2 ** 31 - 1));
    expectDecoded(Tokens, Uint16Array.of(7), Int32Array.of(7));
    expectDecoded(Tokens, [], new Int32Array());
    for (const [values, at] of [
      [[1, -1], 1],
      [[2 ** 31], 0],
      [[1, 2, 1.5], 2],
      [[NaN], 0],
      [['1'], 0],
      [[null], 0],
    ] as const)
      expectRefused(Tokens, values, `entry ${at} is not a token id`);
    expectRefused(Tokens, 'tokens', 'expected token ids (integers from 0 to 2³¹ − 1)');
  });

  it('encodes to a list', () => {
    expect(Tokens.encode(Int32Array.of(1, 2))).toStrictEqual([1, 2]);
  });

  it('finds the first bad entry without reading bytes at all', () => {
    expect(firstBadToken(new Uint8Array([255]))).toBe(-1);
    expect(firstBadToken(Float64Array.of(1, 2 ** 31))).toBe(1);
  });

  it('finds a bad token at every place of a typed array', () => {
    for (let length = 0; length < 10; length++) {
      expect(firstBadToken(new Int32Array(length).fill(2 ** 31 - 1))).toBe(-1);
      for (let at = 0; at < length; at++) expect(firstBadToken(new Int32Array(length).fill(-1, at))).toBe(at);
    }
  });
});

describe('Floats', () => {
  it('is a Float32Array', () => {
    expect(Floats.is(new Float32Array(2))).toBe(true);
    expect(Floats.is([1])).toBe(false);
  });

  it('decodes null as NaN and names the first entry that is no number', () => {
    expectDecoded(Floats, [null, -1.5], Float32Array.of(NaN, -1.5));
    expectRefused(Floats, [1, 'x'], 'entry 1 is not a number');
    expectRefused(Floats, { length: 0 }, 'expected numbers');
  });

  it('encodes NaN as null', () => {
    expect(Floats.encode(Float32Array.of(NaN, 0.5))).toStrictEqual([null, 0.5]);
  });
});

describe('Base64Bytes', () => {
  it('decodes and encodes', () => {
    expectDecoded(Base64Bytes, 'AAEC/w==', Uint8Array.of(0, 1, 2, 255));
    expect(Base64Bytes.encode(Uint8Array.of(0, 1, 2, 255))).toBe('AAEC/w==');
    expect(Base64Bytes.encode(Uint8Array.of(9, 0, 1, 9).subarray(1, 3))).toBe('AAE=');
    expectRefused(Base64Bytes, 'not base64!', 'expected base64 bytes');
    expectRefused(Base64Bytes, 7, 'expected base64 bytes');
  });
});
