import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LocalTinker } from '../../src/local/index.js';
import type { Step } from '../../src/operators/index.js';

const STEPS = 24;
let folder: string;
let script: string;
let data: string;
let local: LocalTinker;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'streams-kill-'));
  script = join(folder, 'child.mjs');
  data = join(folder, 'data.jsonl');
  writeFileSync(data, Array.from({ length: STEPS }, (_, row) => `"row ${row} says ${row * 7}"\n`).join(''));
  // Node 20 runs no TypeScript: the child is bundled first.
  const bundle = await rolldown({
    input: fileURLToPath(new URL('streamsKillChild.ts', import.meta.url)),
    platform: 'node',
    logLevel: 'silent',
  });
  await bundle.write({ file: script, format: 'esm', codeSplitting: false });
  await bundle.close();
  local = await LocalTinker.start();
});
afterAll(async () => {
  await local.close();
  rmSync(folder, { recursive: true });
});

/** Runs the child until it is done, or kills it so long after it said so many steps. Gives whether it was done. */
function run(dir: string, killAfterSteps = Infinity, killAfterMs = 0): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [script, local.url, local.apiKey, data, dir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let steps = 0;
    child.stdout.on('data', (text: Buffer) => {
      steps += text.toString().split('\n').length - 1;
      if (steps >= killAfterSteps) setTimeout(() => child.kill('SIGKILL'), killAfterMs);
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0 || signal === 'SIGKILL') resolve(code === 0);
      else reject(new Error(`the child ended with ${code}`));
    });
  });
}

const curve = (dir: string) =>
  readFileSync(join(dir, 'metrics.jsonl'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Step)
    .map(({ index, batches, learningRate, lossSum, tokens }) => ({ index, batches, learningRate, lossSum, tokens }));

it('ends, killed and resumed again and again, with the very losses of a run that never was', async () => {
  const whole = join(folder, 'whole');
  expect(await run(whole)).toBe(true);
  const expected = curve(whole);
  expect(expected.map(({ index }) => index)).toStrictEqual(Array.from({ length: STEPS }, (_, index) => index));
  expect(expected.at(-1)!.lossSum).toBeLessThan(expected[0]!.lossSum);

  const killed = join(folder, 'killed');
  // Before the first checkpoint, in the middle of steps, right at a save, late.
  const kills = [
    [1, 0],
    [5, 3],
    [6, 1],
    [9, 0],
  ] as const;
  for (const [afterSteps, afterMs] of kills) {
    expect(await run(killed, afterSteps, afterMs)).toBe(false);
  }
  expect(await run(killed)).toBe(true);
  expect(curve(killed)).toStrictEqual(expected);
});
