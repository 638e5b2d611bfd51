import * as t from 'io-ts';

/** Numbers that a condition holds for. */
export const numberType = (name: string, accepts: (n: number) => boolean): t.Type<number> => {
  const is = (u: unknown): u is number => typeof u === 'number' && accepts(u);
  return new t.Type<number>(name, is, (u, context) => (is(u) ? t.success(u) : t.failure(u, context)), t.identity);
};

/** io-ts's own `t.number` takes NaN and infinities, which JSON cannot carry. */
export const Finite: t.Type<number> = numberType('a finite number', Number.isFinite);
export const Integer: t.Type<number> = numberType('an integer', Number.isSafeInteger);
export const NonNegativeInteger: t.Type<number> = numberType(
  'an integer ≥ 0',
  (n) => Number.isSafeInteger(n) && n >= 0,
);
export const PositiveInteger: t.Type<number> = numberType('an integer ≥ 1', (n) => Number.isSafeInteger(n) && n >= 1);
export const NonNegative: t.Type<number> = numberType('a finite number ≥ 0', (n) => Number.isFinite(n) && n >= 0);
export const Positive: t.Type<number> = numberType('a finite number > 0', (n) => Number.isFinite(n) && n > 0);
export const Fraction: t.Type<number> = numberType('a number in [0, 1)', (n) => n >= 0 && n < 1);
export const Probability: t.Type<number> = numberType('a number in (0, 1]', (n) => n > 0 && n <= 1);
export const TtlSeconds: t.Type<number> = numberType(
  'a TTL from 3600 seconds to ten years',
  (n) => Number.isSafeInteger(n) && n >= 3600 && n <= 315_360_000,
);

export const PageSize: t.Type<number> = numberType(
  'an integer from 1 to 200',
  (n) => Number.isSafeInteger(n) && n >= 1 && n <= 200,
);

export const MAX_TOKEN = 2 ** 31 - 1;

/** Index of the first entry that is not a token id (an integer from 0 to 2³¹ − 1), or −1. */
export function firstBadToken(tokens: ArrayLike<number>): number {
  if (tokens instanceof Uint8Array || tokens instanceof Uint16Array) return -1;
  for (let index = 0; index < tokens.length; index++) {
    const token: unknown = tokens[index];
    // The type first: an object from JSON may have a `valueOf` that is no function, and then even `|` throws.
    if (typeof token !== 'number' || (token | 0) !== token || token < 0) return index;
  }
  return -1;
}

/**
 * Token ids as an Int32Array. One loop that stops at the first bad entry: element-wise io-ts validation of a
 * million tokens would make a million contexts.
 */
export const Tokens: t.Type<Int32Array, number[]> = new t.Type<Int32Array, number[]>(
  'token ids (integers from 0 to 2³¹ − 1)',
  (u): u is Int32Array => u instanceof Int32Array && firstBadToken(u) < 0,
  (u, context) => {
    if (!Array.isArray(u) && !ArrayBuffer.isView(u)) return t.failure(u, context);
    const values = u as ArrayLike<number>;
    const bad = firstBadToken(values);
    return bad < 0 ? t.success(Int32Array.from(values)) : t.failure(u, context, `entry ${bad} is not a token id`);
  },
  (tokens) => Array.from(tokens),
);

/** Floats as a Float32Array; null (how JSON writes "none") becomes NaN, and NaN becomes null again. */
export const Floats: t.Type<Float32Array, (number | null)[]> = new t.Type<Float32Array, (number | null)[]>(
  'numbers',
  (u): u is Float32Array => u instanceof Float32Array,
  (u, context) => {
    if (!Array.isArray(u)) return t.failure(u, context);
    const floats = new Float32Array(u.length);
    for (let index = 0; index < u.length; index++) {
      const value: unknown = u[index];
      if (value === null) floats[index] = NaN;
      else if (typeof value === 'number') floats[index] = value;
      else return t.failure(u, context, `entry ${index} is not a number`);
    }
    return t.success(floats);
  },
  (floats) => Array.from(floats, (value) => (Number.isNaN(value) ? null : value)),
);

/** Node's. Declared here since the dashboard's page, which is compiled without Node's types, uses types that lead to this file. */
declare const Buffer: {
  from(text: string, encoding: 'base64'): Uint8Array;
  from(bytes: ArrayBufferLike, offset: number, length: number): { toString(encoding: 'base64'): string };
};

/** Bytes that travel as base64 text in JSON. */
export const Base64Bytes: t.Type<Uint8Array, string> = new t.Type<Uint8Array, string>(
  'base64 bytes',
  (u): u is Uint8Array => u instanceof Uint8Array,
  (u, context) =>
    typeof u === 'string' && /^[A-Za-z0-9+/]*={0,2}$/.test(u)
      ? t.success(new Uint8Array(Buffer.from(u, 'base64')))
      : t.failure(u, context),
  (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64'),
);
