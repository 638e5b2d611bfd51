/** Prices of the service's public list. The lists are written by hand: see test/unit/fixtures/prices/README.md. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { priceOf, readPrices, type ReadPricesOptions } from '../../../src/evals/index.js';
import { run } from '../cli/terminal.js';

const fixture = (name: string) => readFileSync(new URL(`../fixtures/prices/${name}.json`, import.meta.url), 'utf8');
const DAY_MS = 86_400_000;
const NOW = Date.parse('2026-11-18T12:00:00Z');

describe('prices of the service', () => {
  let folder: string;
  let server: Server;
  let url: string;
  let body: string;
  let status: number;
  let hits: number;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tinker-rx-prices-'));
    vi.stubEnv('XDG_CACHE_HOME', folder);
    vi.stubEnv('NO_COLOR', '1');
    [body, status, hits] = [fixture('models'), 200, 0];
    server = createServer((_, reply) => {
      hits++;
      reply.writeHead(status, { 'content-type': 'application/json' }).end(body);
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/models.json`;
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await new Promise((closed) => server.close(closed));
    rmSync(folder, { recursive: true });
  });

  const read = (options: ReadPricesOptions = {}) => readPrices({ url, now: () => NOW, ...options });

  it('reads dollars per million tokens by id, cached prefill among them', async () => {
    const { asOf, models, problem, unread } = await read();
    expect([asOf, problem, unread]).toStrictEqual(['2026-11-18', undefined, undefined]);
    expect(models).toStrictEqual({
      'Qwen/Qwen3-8B': { prefill: 0.195, cached: 0.039, sample: 0.6, train: 0.44 },
      'thinkingmachines/Inkling:peft:262144': { prefill: 2, cached: 0.2, sample: 6, train: 7.5 },
      'thinkingmachines/Inkling': { prefill: 1, cached: 0.1, sample: 3, train: 3.75 },
    });
    const counts = { prompt: 1_000_000, cached: 600_000, sampled: 0, trained: 0 };
    expect(priceOf(counts, models['thinkingmachines/Inkling']!)).toBeCloseTo(0.4 + 0.06, 12);
  });

  it('keeps the list for a day, and `readPrices()` finds it', async () => {
    const first = await read();
    expect(await read({ now: () => NOW + DAY_MS - 1 })).toStrictEqual(first);
    expect(hits).toBe(1);
    expect(readPrices()).toStrictEqual(first);
    await read({ now: () => NOW + DAY_MS });
    await read({ maxAgeMs: 0 });
    expect(hits).toBe(3);
  });

  it('reads a changed list: new fields, numbers, a missing cached price, and a model without all prices', async () => {
    body = fixture('changed');
    const { models, unread } = await read();
    expect(models).toStrictEqual({ 'Qwen/Qwen3-8B': { prefill: 0.1, sample: 0.5, train: 1000.44 } });
    expect(unread).toStrictEqual(['some/Preview']);
    expect(priceOf({ prompt: 10, cached: 10, sampled: 0, trained: 0 }, models['Qwen/Qwen3-8B']!)).toBeCloseTo(1e-6, 12);
  });

  it('falls back to the kept list, or to the one of this release, and says why', async () => {
    body = fixture('broken');
    const own = await read();
    expect(own).toStrictEqual({ ...readPrices(), problem: `${url}: it is not valid JSON` });
    expect(own.asOf).toBe('2026-10-07');
    expect(existsSync(join(folder, 'tinker-rx', 'prices.json'))).toBe(false);
    body = '[]';
    expect((await read()).problem).toContain('it has no model with prices');
    body = '[{"name":"no id"}]';
    expect((await read()).problem).toContain('it has no model with prices');
    body = '{"models":[]}';
    expect((await read()).problem).toContain('it is not a list of models');
    [body, status] = [fixture('models'), 503];
    expect((await read()).problem).toContain('status 503');
    status = 200;
    const kept = await read();
    status = 503;
    expect(await read({ maxAgeMs: 0 })).toStrictEqual({ ...kept, problem: `${url}: it answered with status 503` });
    expect((await read({ maxAgeMs: 0, url: 'http://127.0.0.1:1/' })).models).toStrictEqual(kept.models);
  });

  it.each([
    ['$0.20', 0.2],
    ['$ 1,234,567.5', 1_234_567.5],
    ['.5', 0.5],
    ['0', 0],
    [0.25, 0.25],
    ['$0,20', undefined],
    ['$12,34', undefined],
    ['€0.20', undefined],
    ['$0.20 / 1K tokens', undefined],
    ['-$1', undefined],
    ['free', undefined],
    ['', undefined],
    [-1, undefined],
    [null, undefined],
    [{ usd: 1 }, undefined],
  ])('reads the price %j as %s', async (prefill, expected) => {
    const row = { name: 'A', tinker_id: 'a/A', prefill: '$1', sample: '$1', train: '$1' };
    body = JSON.stringify([row, { ...row, tinker_id: 'b/B', prefill }]);
    const { models, unread } = await read();
    expect(models['b/B']?.prefill).toBe(expected);
    expect(unread).toStrictEqual(expected === undefined ? ['b/B'] : undefined);
  });

  it('reads the other rows where one has no id, and names it', async () => {
    body = JSON.stringify([...(JSON.parse(fixture('models')) as object[]), { name: 'Nameless' }, null, 'text']);
    const { models, unread, problem } = await read();
    expect(Object.keys(models)).toHaveLength(3);
    expect(problem).toBeUndefined();
    expect(unread).toStrictEqual(['Nameless', 'row 5', 'row 6']);
    expect((await read()).unread, 'of the kept list').toStrictEqual(unread);
  });

  it('keeps the list of one address apart from that of another', async () => {
    const first = await read();
    body = fixture('changed');
    const other = await read({ url: `${url}?of=another` });
    expect(other.models).not.toStrictEqual(first.models);
    expect(hits).toBe(2);
  });

  it('prices a model that is called like a field of every object', async () => {
    body = '[{"tinker_id":"__proto__","prefill":"$1","sample":"$1","train":"$1"}]';
    const { models } = await read();
    expect(Object.keys(models)).toStrictEqual(['__proto__']);
  });

  it('reads again where the kept list is damaged', async () => {
    const first = await read();
    writeFileSync(join(folder, 'tinker-rx', 'prices.json'), '{"asOf":');
    expect(readPrices().asOf).toBe('2026-10-07');
    expect(await read()).toStrictEqual(first);
  });

  it('`prices update` shows what changed, and fails where nothing could be read', async () => {
    const terminal = { nowMs: NOW };
    const first = await run(['prices', 'update', '--url', url], terminal);
    expect(first.code, first.stderr).toBe(0);
    expect(first.stdout).toContain('3 models as of 2026-11-18, 2 new or changed');
    body = fixture('changed');
    const second = await run(['prices', 'update', '--url', url], terminal);
    expect(second.stdout).toMatch(/Qwen\/Qwen3-8B.*0\.195 \/ 0\.039 \/ 0\.6 \/ 0\.44/);
    expect(second.stderr).toContain('no full price of some/Preview');
    expect(second.stderr).toContain('No longer listed: thinkingmachines/Inkling:peft:262144, thinkingmachines/Inkling');
    body = fixture('broken');
    const third = await run(['prices', 'update', '--url', url, '-f', 'json'], terminal);
    expect([third.code, third.stdout]).toStrictEqual([1, '']);
    expect(third.stderr).toMatch(/cannot be read[^]*it is not valid JSON[^]*The prices of 2026-11-18 stay in use/);
  });
});
