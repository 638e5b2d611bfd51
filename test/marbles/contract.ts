import { expect, it } from 'vitest';
import { type OperatorContract, operatorContract } from '../../src/testing/operatorContract.js';

export { firehose } from '../../src/testing/firehose.js';

/** The manners every operator has. What is particular to one is in its own tests. */
export function keepsContract(contract: Omit<OperatorContract, 'assertDeepEqual'>): void {
  const assertDeepEqual = (actual: unknown, expected: unknown) => expect(actual).toStrictEqual(expected);
  for (const { title, check } of operatorContract({ ...contract, assertDeepEqual })) it(title, check);
}

/** A function that throws, for the contract of operators that take one. */
export function throwing(): never {
  throw new Error('thrown');
}
