// A Redis stream as a source of rows, and their acknowledgement once a checkpoint holds them.
import { createClient } from 'redis';
import { concatMap, type MonoTypeOperatorFunction, type Observable, tap } from 'rxjs';
import type { Step } from 'tinker-rx/operators';
import { fromRowBatches } from 'tinker-rx/sources';

export const openRedis = (url = 'redis://127.0.0.1:6379') => createClient({ url }).connect();
type Redis = Awaited<ReturnType<typeof openRedis>>;
export type Entry = { readonly id: string; readonly message: Readonly<Record<string, string>> };
export type Place = { readonly stream: string; readonly group: string };

/** Rows that were delivered before and never acknowledged come first, then new ones. Reads as fast as demand allows. */
export function fromRedisStream(redis: Redis, { stream, group }: Place): Observable<Entry> {
  return fromRowBatches(async function* (signal) {
    // Its own connection, since it blocks. Cutting it leaves nothing behind that takes rows and hands them to nobody.
    const reader = await redis.duplicate().connect();
    signal.addEventListener('abort', () => reader.destroy());
    for (let id = '0'; !signal.aborted;) {
      const reply = await reader.xReadGroup(group, 'trainer', { key: stream, id }, { COUNT: 8, BLOCK: 5000 });
      const entries = (reply as readonly { readonly messages: readonly Entry[] }[] | null)?.[0]?.messages ?? [];
      if (id !== '>') id = entries.at(-1)?.id ?? '>';
      yield entries;
    }
  });
}

/** Remembers the ids of every batch, and acknowledges those of the batches that a saved checkpoint holds. */
export function acknowledgements(redis: Redis, { stream, group }: Place, batches: number) {
  const waiting: string[][] = [];
  let acknowledged = batches;
  const remember: MonoTypeOperatorFunction<readonly Entry[]> = tap((entries) =>
    waiting.push(entries.map(({ id }) => id)),
  );
  const acknowledge: MonoTypeOperatorFunction<Step> = concatMap(async (step) => {
    const ids = waiting.splice(0, (step.checkpoint?.batches ?? acknowledged) - acknowledged).flat();
    acknowledged = step.checkpoint?.batches ?? acknowledged;
    if (ids.length > 0) await redis.xAck(stream, group, ids);
    return step;
  });
  return { remember, acknowledge };
}
