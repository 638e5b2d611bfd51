import { isLeft } from 'fp-ts/lib/Either.js';
import type * as t from 'io-ts';
import { expect } from 'vitest';
import { describeErrors } from '../../../src/wire/record.js';

/** Expects that a value decodes to another. */
export function expectDecoded<A>(codec: t.Decoder<unknown, A>, value: unknown, expected: unknown): void {
  const decoded = codec.decode(value);
  if (isLeft(decoded)) expect.fail(describeErrors(decoded.left));
  else expect(decoded.right).toStrictEqual(expected);
}

/** Expects that a value does not decode, and what is said of it. */
export function expectRefused(codec: t.Decoder<unknown, unknown>, value: unknown, said: string): void {
  const decoded = codec.decode(value);
  if (isLeft(decoded)) expect(describeErrors(decoded.left)).toBe(said);
  else expect.fail(`${JSON.stringify(value)} was decoded`);
}
