import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { isSessionRecord, Sessions } from '../../../src/local/service/sessions.js';
import { JsonRecords } from '../../../src/local/store/jsonRecords.js';

const TTL_MS = 60_000;
let folder: string;
let nowMs: number;
let sessions: Sessions;
let ended: string[];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-sessions-'));
  nowMs = 0;
  ended = [];
  const records = await JsonRecords.open(folder, isSessionRecord, ({ sessionId }) => sessionId);
  let made = 0;
  sessions = new Sessions({
    records,
    now: () => nowMs,
    steadyNow: () => nowMs,
    newId: () => `session-${++made}`,
    ttlMs: TTL_MS,
    onEnd: (sessionId) => ended.push(sessionId),
  });
});
afterEach(async () => {
  sessions.close();
  // The end of a session may still be being written: nothing may block that meanwhile.
  await rm(folder, { recursive: true, maxRetries: 100, retryDelay: 50 });
});
const create = async () => (await sessions.create({ tags: [], sdkVersion: 'x', projectId: 'p' })).sessionId;

it('ends a session that is silent for longer than its time, and not one with a heartbeat', async () => {
  const [silent, alive] = [await create(), await create()];
  for (nowMs = TTL_MS / 2; nowMs <= 3 * TTL_MS; nowMs += TTL_MS / 2)
    expect(sessions.use(alive).status.type).toBe('active');
  expect(ended).toStrictEqual([silent]);
  expect(() => sessions.use(silent)).toThrow(`session ${silent} is over: cancelled, no heartbeat for 60 s`);
});

it('keeps a session whose last sign is exactly as old as its time', async () => {
  const session = await create();
  nowMs = TTL_MS;
  sessions.expire();
  expect(ended).toStrictEqual([]);
  nowMs++;
  sessions.expire();
  expect(ended).toStrictEqual([session]);
});
