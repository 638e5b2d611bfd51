/** The parts of examples/redis.ts: a Redis stream as a source, and acknowledgement after the checkpoint. */
import { firstValueFrom, from, NEVER, take, toArray } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { acknowledgements, type Entry, fromRedisStream, openRedis } from '../../examples/redisRows.js';
import { batch, concatMapAhead, type Step } from '../../src/operators/index.js';
import { hasRedis, type RedisServer, startRedis, startStandIn } from './support/redisServers.js';

const place = { stream: 'rows', group: 'trainers' };
const step = (index: number, batches?: number): Step => ({
  ...{
    index,
    loss: 1,
    lossSum: 1,
    metrics: {},
    datums: 1,
    tokens: 1,
    learningRate: 1,
    batches: index + 1,
    durationMs: 1,
  },
  ...(batches === undefined ? {} : { checkpoint: { name: 'c', steps: index + 1, batches, kept: true } }),
});
const rowsOf = (entries: readonly Entry[]) => entries.map(({ message }) => message['row']);

const servers = { 'a stand-in': startStandIn, ...(hasRedis ? { 'redis-server': startRedis } : {}) };

const where = hasRedis ? 'on redis-server and on a stand-in' : 'on a stand-in only: redis-server is not installed';
it(`runs ${where}`, () => expect(Object.keys(servers)).toHaveLength(hasRedis ? 2 : 1));

describe.each(Object.entries(servers))('with %s', (_, start) => {
  let server: RedisServer;
  let redis: Awaited<ReturnType<typeof openRedis>>;
  beforeAll(async () => {
    if (start === startRedis) server = await start();
  });
  beforeEach(async () => {
    if (start === startStandIn) server = await start();
    redis = await openRedis(server.url);
    await redis.del(place.stream);
    await redis.xGroupCreate(place.stream, place.group, '0', { MKSTREAM: true });
    for (let row = 1; row <= 20; row++) await redis.xAdd(place.stream, '*', { row: String(row) });
  });
  afterEach(async () => {
    redis.destroy();
    if (start === startStandIn) await server[Symbol.asyncDispose]();
  });
  afterAll(async () => {
    if (start === startRedis) await server[Symbol.asyncDispose]();
  });
  const pending = async () => (await redis.xPending(place.stream, place.group)).pending;
  const read = (count: number) => firstValueFrom(fromRedisStream(redis, place).pipe(take(count), toArray()));

  it('gives rows in order, and waits for new ones', async () => {
    expect(rowsOf(await read(20))).toStrictEqual(Array.from({ length: 20 }, (__, row) => String(row + 1)));
    await redis.xAck(
      place.stream,
      place.group,
      (await read(20)).map(({ id }) => id),
    );
    const later = read(1);
    await redis.xAdd(place.stream, '*', { row: 'later' });
    expect(rowsOf(await later)).toStrictEqual(['later']);
  });

  it('gives rows that were delivered and not acknowledged again, before new ones', async () => {
    const first = await read(3);
    // Eight are read at a time.
    expect(await pending()).toBe(8);
    await redis.xAck(place.stream, place.group, [first[0]!.id, first[1]!.id]);
    expect(rowsOf(await read(8))).toStrictEqual(['3', '4', '5', '6', '7', '8', '9', '10']);
  });

  it('reads no further while the bounded operator downstream is full', async () => {
    const full = fromRedisStream(redis, place).pipe(
      batch({ size: 2 }),
      concatMapAhead(() => NEVER, { ahead: 0 }),
    );
    const subscription = full.subscribe();
    await vi.waitFor(async () => expect(await pending()).toBe(8));
    await redis.xAdd(place.stream, '*', { row: 'more' });
    expect(await pending()).toBe(8);
    subscription.unsubscribe();
  });

  it('acknowledges the batches that a checkpoint holds, and nothing before', async () => {
    const entries = await read(20);
    const { remember, acknowledge } = acknowledgements(redis, place, 0);
    await from([0, 4, 8, 12].map((at) => entries.slice(at, at + 4)))
      .pipe(remember)
      .forEach(() => {});
    await from([step(0)])
      .pipe(acknowledge)
      .forEach(() => {});
    expect(await pending()).toBe(20);
    // The checkpoint of two batches comes out when a third is already trained on.
    await from([step(1, 2), step(2)])
      .pipe(acknowledge)
      .forEach(() => {});
    expect(await pending()).toBe(12);
    await from([step(3, 4)])
      .pipe(acknowledge)
      .forEach(() => {});
    expect(await pending()).toBe(4);
    expect(rowsOf(await read(4))).toStrictEqual(['17', '18', '19', '20']);
  });
});
