import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as zlib from 'node:zlib';
import { lastValueFrom, NEVER, type Observable, take, tap, toArray } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import { BadRowError, fromConversations, fromParquet, SourceError, type SourceEvent } from '../../src/sources/index.js';

// Written by fixtures/sources/make_parquet.py with pyarrow.
const fixture = (name: string) => new URL(`./fixtures/sources/${name}.parquet`, import.meta.url);
const all = <T>(source: Observable<T>) => lastValueFrom(source.pipe(toArray()));
const expected = Array.from({ length: 10 }, (_, id) => ({
  id,
  large: 2n ** 60n + BigInt(id),
  score: id / 4,
  text: id === 3 ? null : `row ${id} 字`,
  tokens: Array.from({ length: id }, (_, place) => place),
}));

describe('fromParquet', () => {
  it.each(['none', 'snappy', 'gzip', 'brotli'])('reads what pyarrow wrote with compression %s', async (compression) => {
    expect(await all(fromParquet(fixture(`rows.${compression}`)))).toStrictEqual(expected);
  });

  it('reads zstd where Node can, and says so where it cannot', async () => {
    const rows = all(fromParquet(fixture('rows.zstd')));
    if ('zstdDecompressSync' in zlib) expect(await rows).toStrictEqual(expected);
    else await expect(rows).rejects.toThrow('this Node cannot read zstd; 22.15 or newer can');
  });

  it('reads the columns asked for, and refuses one that is not there', async () => {
    expect(await all(fromParquet(fixture('rows.snappy'), { columns: ['id'] }).pipe(take(2)))).toStrictEqual([
      { id: 0 },
      { id: 1 },
    ]);
    await expect(all(fromParquet(fixture('rows.snappy'), { columns: ['nope'] }))).rejects.toThrow(
      "has no column 'nope'",
    );
  });

  it('names a bad row by its number across row groups', async () => {
    const decode = (row: unknown) => {
      if ((row as { id: number }).id === 5) throw new Error('five');
      return row;
    };
    const error: unknown = await all(fromParquet(fixture('rows.gzip'), { decode })).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(BadRowError);
    expect(error).toMatchObject({ line: 6, reason: 'five' });
  });

  it('reports progress a row group', async () => {
    const events: SourceEvent[] = [];
    await all(fromParquet(fixture('rows.none'), { onEvent: (event) => events.push(event) }));
    expect(events.map((event) => event.type === 'source-progress' && event.rows)).toStrictEqual([4, 8, 10, 10]);
    expect(events.at(-1)).toMatchObject({ done: true, bytes: 3988, totalBytes: 3988 });
  });

  it('pauses while what is downstream is full', async () => {
    let read = 0;
    const subscription = fromParquet(fixture('rows.none'))
      .pipe(
        tap(() => read++),
        concatMapAhead(() => NEVER, { ahead: 1 }),
      )
      .subscribe();
    await vi.waitFor(() => expect(read).toBe(2), 240_000);
    await sleep(50);
    expect(read).toBe(2);
    subscription.unsubscribe();
  });

  it('names a file that is no Parquet, or not there', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'parquet-'));
    const path = join(folder, 'x.parquet');
    await expect(all(fromParquet(path))).rejects.toThrow(`${path}: ENOENT`);
    writeFileSync(path, 'hello, this is text');
    const error: unknown = await all(fromParquet(path)).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(SourceError);
    expect((error as Error).message).toMatch(new RegExp(`^${path}: `));
    rmSync(folder, { recursive: true });
  });

  it('brings conversations', async () => {
    const [first] = await all(fromConversations(fixture('chats')));
    expect(first).toStrictEqual({
      messages: [
        { role: 'user', content: '0+1?' },
        { role: 'assistant', content: '1' },
      ],
    });
  });
});
