import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CheckpointStore, type NewCheckpoint } from '../../../src/local/store/checkpointStore.js';

const HOUR_S = 3600;
let folder: string;
let nowMs: number;
let store: CheckpointStore;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tinker-rx-store-'));
  nowMs = Date.parse('2026-01-01T00:00:00Z');
  store = await CheckpointStore.open(folder, () => nowMs);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const checkpoint = (name: string, text: string): NewCheckpoint => ({
  ...{ runId: 'run', type: 'training', name, ttlSeconds: HOUR_S },
  info: { baseModel: 'tiny', lora: { rank: 4 } } as never,
  files: new Map([['state', Buffer.from(text)]]),
});
const files = async () => (await readdir(folder, { recursive: true })).filter((name) => name.includes('state'));

it('an expired checkpoint leaves the disk with the next save', async () => {
  for (const name of ['a', 'b', 'c']) await store.save(checkpoint(name, name));
  expect(await files()).toHaveLength(3);
  nowMs += HOUR_S * 1000 + 1000;
  await store.save(checkpoint('d', 'd'));
  await store.flush();
  expect(await files()).toHaveLength(1);
});

it('a checkpoint stays when an older one of its name expires while it is saved', async () => {
  await store.save(checkpoint('a', 'old'));
  nowMs += HOUR_S * 1000 + 1000;
  const saving = store.save(checkpoint('a', 'new'));
  store.list();
  const saved = await saving;
  await store.flush();
  expect(Buffer.from((await store.read(saved)).get('state')!).toString()).toBe('new');
});
