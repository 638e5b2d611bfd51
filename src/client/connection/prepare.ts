import { isLeft } from 'fp-ts/lib/Either.js';
import { describeErrors, type Fields, type Input, type Json, type RecordType } from '../../wire/record.js';
import { ValidationError } from '../../wire/tinkerError.js';

/** The wire form of a request that a caller wrote. @throws ValidationError naming every mistake and where it is. */
export function prepare<F extends Fields>(codec: RecordType<F>, input: Input<F>): Json {
  const prepared = codec.prepare(input);
  if (isLeft(prepared)) throw new ValidationError(describeErrors(prepared.left));
  return prepared.right;
}

/** The same object without its undefined fields, which a strict request would refuse. */
export function withoutUndefined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const kept: Record<string, unknown> = {};
  for (const key in fields) if (fields[key] !== undefined) kept[key] = fields[key];
  return kept as never;
}
