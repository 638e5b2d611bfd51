import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastValueFrom, toArray } from 'rxjs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  downloadHubFile,
  hubEvents$,
  loadTokenizer,
  type HubEvent,
  type HubOptions,
} from '../../../src/chat/tokenizer/index.js';
import { HubServer, type HubFile } from './tokenizerHubServer.js';

const large: HubFile = { content: Buffer.alloc(300_000, 'tokenizer '), isLarge: true };
let hub: HubServer;
let home: string;
let options: HubOptions;
beforeEach(async () => {
  hub = await HubServer.start({ 'tokenizer.json': large });
  home = await mkdtemp(join(tmpdir(), 'tinker-rx-hub-'));
  options = { env: { HF_ENDPOINT: hub.url, HF_HOME: home }, retryDelayMs: 1 };
});
afterEach(async () => {
  await hub[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

it('tell of every file, whoever asked for it', async () => {
  const seen: HubEvent[] = [];
  const watching = hubEvents$.subscribe((event) => seen.push(event));
  // Nobody gave this call a hook of its own.
  await loadTokenizer('org/name', { ...options, endpoint: hub.url }).catch(() => {});
  watching.unsubscribe();
  const progress = seen.filter((event) => event.type === 'file-progress');
  expect(progress[0]).toMatchObject({ repo: 'org/name', file: 'tokenizer.json', receivedBytes: 0 });
  expect(progress.at(-1)).toMatchObject({ receivedBytes: 300_000, totalBytes: 300_000 });
  expect(seen.map(({ type }) => type)).toContain('file-ready');
  expect(seen.find(({ type }) => type === 'file-absent')).toMatchObject({ repo: 'org/name' });
});

it('tell of tries that failed, and why, in the stream of the file too', async () => {
  let failures = 2;
  hub.intercept = (_request, response) => {
    if (failures-- <= 0) return false;
    response.writeHead(503).end();
    return true;
  };
  const shared: HubEvent[] = [];
  const watching = hubEvents$.subscribe((event) => shared.push(event));
  const events = await lastValueFrom(downloadHubFile('org/name', 'tokenizer.json', options).pipe(toArray()));
  watching.unsubscribe();
  expect(events.slice(0, 2)).toStrictEqual([
    {
      type: 'file-retry',
      repo: 'org/name',
      file: 'tokenizer.json',
      attempt: 1,
      delayMs: 1,
      reason: `${hub.url} answers 503 for org/name`,
    },
    expect.objectContaining({ type: 'file-retry', attempt: 2, delayMs: 2 }),
  ]);
  expect(events.at(-1)!.type).toBe('file-ready');
  expect(shared).toStrictEqual(events);
});

it('do not tell of a retry where there is none', async () => {
  hub.intercept = (_request, response) => {
    response.writeHead(503).end();
    return true;
  };
  const seen: HubEvent[] = [];
  const watching = hubEvents$.subscribe((event) => seen.push(event));
  await expect(lastValueFrom(downloadHubFile('org/name', 'x', { ...options, retries: 1 }))).rejects.toThrow('503');
  watching.unsubscribe();
  expect(seen).toHaveLength(1);
});
