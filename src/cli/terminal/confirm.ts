import { createInterface } from 'node:readline/promises';
import { CliError } from '../CliError.js';
import type { Context } from '../context.js';

/**
 * Asks yes or no; anything but yes is no.
 *
 * @throws CliError if nobody is there to answer: a script must not take that for success
 */
export async function confirm({ stdin, stderr }: Context, question: string): Promise<boolean> {
  stderr.write(`${question} [y/N]: `);
  const lines = createInterface({ input: stdin });
  try {
    for await (const line of lines) return /^\s*y(es)?\s*$/i.test(line);
    stderr.write('\n');
    throw new CliError('No answer', { details: 'Use --yes to continue without being asked.' });
  } finally {
    lines.close();
  }
}
