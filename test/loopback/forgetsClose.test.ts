import { spawn } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LocalTinker } from 'tinker-rx/local';
import { bundleForNode } from './support/bundleForNode.js';

const cache = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url));
const folder = join(cache, `tinker-rx-forgets-close-${process.pid}`);
const script = join(folder, 'child.mjs');
let local: LocalTinker;

beforeAll(async () => {
  mkdirSync(folder, { recursive: true });
  const input = fileURLToPath(new URL('forgetsCloseChild.ts', import.meta.url));
  await bundleForNode(input, folder, 'child.mjs');
  // Slow enough that results are still to come when the program has run to its end.
  local = await LocalTinker.start({ clockMs: 500 });
});
afterAll(async () => {
  await local.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Run {
  readonly said: string;
  readonly warned: string;
  readonly end: number | string | null;
}
/** What the program said and how it ended; a program that does not end is killed, and that is its end. */
function run(program: string): Promise<Run> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [script, program, local.url, local.apiKey], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 240_000,
      killSignal: 'SIGKILL',
    });
    let said = '';
    let warned = '';
    child.stderr.on('data', (text: Buffer) => (warned += text.toString()));
    child.stdout.on('data', (text: Buffer) => (said += text.toString()));
    child.on('close', (code, signal) => resolve({ said, warned, end: signal ?? code }));
  });
}

describe('a program that forgets to close its client', () => {
  it.each([
    ['trains and samples', 'sampled 1\n'],
    ['does not wait for what it asked', 'step 1\nstep 2\nstep 3\n'],
    ['lists checkpoints', 'listed 0\n'],
    ['samples from a handle', 'sampled 1\n'],
    ['has a service that does not answer', 'APITimeoutError\n'],
  ])('ends when its work is done, and not before: %s', async (program, said) => {
    expect(await run(program)).toEqual({ said, warned: '', end: 0 });
  });

  it.each(['has a failure that nobody reads', 'has one and calls process.exit'])(
    'is told of failures that nobody reads, also when it ends within a minute of them: %s',
    async (program) => {
      expect(await run(program)).toEqual({
        said: 'asked\n',
        warned: expect.stringMatching(
          /^tinker-rx warning: SaveWeights of \S+ failed, and its result was never read: .*ttl.*\n$/,
        ) as string,
        end: 0,
      });
    },
  );
});
