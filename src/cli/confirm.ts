import { createInterface } from 'node:readline/promises';
import type { Context } from './context.js';

/** Asks yes or no; anything but yes, also the end of the input, is no. */
export async function confirm({ stdin, stderr }: Context, question: string): Promise<boolean> {
  stderr.write(`${question} [y/N]: `);
  const lines = createInterface({ input: stdin });
  try {
    for await (const line of lines) return /^\s*y(es)?\s*$/i.test(line);
    return false;
  } finally {
    lines.close();
  }
}
