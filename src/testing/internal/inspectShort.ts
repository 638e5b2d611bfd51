import { inspect } from 'node:util';

/** A value as text, for a message. */
export const inspectShort = (value: unknown): string =>
  inspect(value, { depth: 6, breakLength: 160, maxArrayLength: 40 });
