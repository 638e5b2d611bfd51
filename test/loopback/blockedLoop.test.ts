import { execFile } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, it } from 'vitest';
import { LocalTinker } from 'tinker-rx/local';
import { bundleForNode } from './support/bundleForNode.js';

const cache = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url));
const folder = join(cache, `tinker-rx-blocked-loop-${process.pid}`);
const script = join(folder, 'child.mjs');

beforeAll(async () => {
  mkdirSync(folder, { recursive: true });
  const input = fileURLToPath(new URL('blockedLoopChild.ts', import.meta.url));
  await bundleForNode(input, folder, 'child.mjs');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Told {
  readonly before: string;
  readonly after: string;
  readonly blocked: readonly number[];
}

/** What a process tells whose loop was blocked for so long, at a service that gives sessions up after `sessionTtlMs` of silence. */
async function blocked(blockMs: number, sessionTtlMs?: number): Promise<Told> {
  const local = await LocalTinker.start(sessionTtlMs === undefined ? {} : { sessionTtlMs });
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [script, String(blockMs), local.url, local.apiKey], {
      timeout: 240_000,
    });
    return JSON.parse(stdout) as Told;
  } finally {
    await local.close();
  }
}

it.concurrent('reports an event loop that was blocked for six seconds, and keeps the session', async ({ expect }) => {
  const { before, after, blocked: times } = await blocked(6000);
  expect([before, after]).toEqual(['sampled', 'sampled']);
  expect(times).toHaveLength(1);
  expect(times[0]).toBeGreaterThan(5000);
});

it.concurrent('a block that is longer than the silence which the service allows loses the session, in words', async ({
  expect,
}) => {
  const { before, after } = await blocked(6000, 4000);
  expect(before).toBe('sampled');
  expect(after).toMatch(/^GoneError: .*session \S+ is over: cancelled, no heartbeat for 4 s/);
});

it.concurrent('a shorter one does not', async ({ expect }) => {
  expect(await blocked(500, 4000)).toEqual({ before: 'sampled', after: 'sampled', blocked: [] });
});
