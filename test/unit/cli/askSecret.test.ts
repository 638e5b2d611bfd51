import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { askSecret } from '../../../src/cli/terminal/askSecret.js';
import type { Context } from '../../../src/cli/context.js';

/** A terminal that writes down, in order, when it stops showing what is typed and what it is told to show. */
function terminal() {
  const seen: string[] = [];
  const stdin = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode: (raw: boolean) => void seen.push(raw ? '(quiet)' : '(echo)'),
  });
  const stderr = { isTTY: true, write: (text: string) => seen.push(text) > 0 };
  return { seen, stdin, context: { stdin, stderr } as unknown as Context };
}

it('has the terminal show nothing of what is typed before it asks, until it has its answer', async () => {
  const { seen, stdin, context } = terminal();
  const answer = askSecret(context, 'Key: ');
  stdin.write('tml-x\r');
  expect(await answer).toBe('tml-x');
  expect(seen).toEqual(['(quiet)', 'Key: ', '*', '*', '*', '*', '*', '(echo)', '\n']);
});

it('gives the terminal back when it is interrupted', async () => {
  const { seen, stdin, context } = terminal();
  const answer = askSecret(context, 'Key: ');
  stdin.write('ab\u0003');
  await expect(answer).rejects.toMatchObject({ exitCode: 130 });
  expect(seen.slice(-2)).toEqual(['(echo)', '\n']);
});
