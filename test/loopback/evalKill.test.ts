/**
 * An evaluation that is killed, and continued by another process. Its answers are written in the child; with `EVAL_KILL=local` in the
 * environment they come from the embedded service, which takes a minute.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LocalTinker } from '../../src/local/index.js';

let folder: string;
let script: string;
let local: LocalTinker | undefined;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'eval-kill-'));
  script = join(folder, 'child.mjs');
  // Node 20 runs no TypeScript: the child is bundled first.
  const input = fileURLToPath(new URL('evalKillChild.ts', import.meta.url));
  const bundle = await rolldown({ input, platform: 'node', logLevel: 'silent' });
  await bundle.write({ file: script, format: 'esm', codeSplitting: false });
  await bundle.close();
  if (process.env['EVAL_KILL'] === 'local') local = await LocalTinker.start();
});
afterAll(async () => {
  await local?.close();
  rmSync(folder, { recursive: true });
});

/** Runs the child until it is done, or kills it when it has so many results. Gives which examples it asked. */
function run(file: string, killAt = Infinity): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [script, file, ...(local === undefined ? [] : [local.url, local.apiKey])], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let said = '';
    child.stdout.on('data', (text: Buffer) => {
      said += text.toString();
      if (killAt < Infinity && said.split('have\n').length > killAt) child.kill('SIGKILL');
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0 || signal === 'SIGKILL') resolve([...said.matchAll(/ask (\d+)\n/g)].map(([, number]) => number!));
      else reject(new Error(`the child ended with ${code}`));
    });
  });
}

it('killed twice and resumed, 2,000 examples have one result each, and none with a result is asked again', async () => {
  const file = join(folder, 'results.jsonl');
  const inFile = () => {
    const examples = readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('{"type":"example"') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as { readonly input: string });
    return examples.map(({ input }) => input);
  };
  await run(file, 500);
  const first = inFile();
  const second = await run(file, 1200);
  const both = inFile();
  const third = await run(file);
  const all = inFile();

  expect(first.length).toBeGreaterThanOrEqual(500);
  expect(both.length).toBeGreaterThanOrEqual(1200);
  expect(both.length).toBeLessThan(2000);
  expect(second.filter((asked) => first.includes(asked))).toEqual([]);
  expect(third.filter((asked) => both.includes(asked))).toEqual([]);
  expect(all).toHaveLength(2000);
  expect(new Set(all).size).toBe(2000);
});
