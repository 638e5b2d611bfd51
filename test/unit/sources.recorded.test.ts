import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastValueFrom, toArray } from 'rxjs';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { fromRecorded } from '../../src/sources/index.js';

const folder = mkdtempSync(join(tmpdir(), 'tinker-rx-recorded-'));
const file = join(folder, 'calls.jsonl');
afterAll(() => rmSync(folder, { recursive: true }));

const at = '2026-11-18T00:00:00.000Z';
const ask = (content: string) => [{ role: 'user', content }];
const call = (id: string, question: string, answer: string, more: object = {}) => ({
  ...{ type: 'call', id, at, api: 'chat', model: 'm', messages: ask(question), status: 200, latencyMs: 1 },
  reply: { role: 'assistant', content: answer },
  ...more,
});
const feedback = (id: string, more: object) => ({ type: 'feedback', id, at, ...more });
const write = (...lines: readonly object[]) =>
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
const all = <T>(stream: Parameters<typeof lastValueFrom<T>>[0]) => lastValueFrom(stream);

beforeEach(() =>
  write(
    call('1', 'a?', 'A.', { replyId: 'chatcmpl-1' }),
    call('2', 'a?', 'B.'),
    call('3', 'c?', 'C.', { model: 'other' }),
    call('4', 'd?', 'D.', { status: 500, reply: undefined }),
    feedback('chatcmpl-1', { rating: 1 }),
    feedback('2', { rating: 1 }),
    feedback('2', { rating: -1 }),
    feedback('3', { correction: 'Sea.' }),
  ),
);

describe('fromRecorded', () => {
  it('gives conversations, with corrections in place of replies, without calls that failed', async () => {
    const found = await all(fromRecorded(file).pipe(toArray()));
    expect(found.map(({ messages }) => messages.map(({ content }) => content))).toStrictEqual([
      ['a?', 'A.'],
      ['a?', 'B.'],
      ['c?', 'Sea.'],
    ]);
  });

  it('filters by the newest rating, by model and by anything else', async () => {
    const ids = async (options: object) =>
      (await all(fromRecorded(file, { as: 'calls', ...options }).pipe(toArray()))).map(({ id }) => id);
    expect(await ids({})).toStrictEqual(['1', '2', '3', '4']);
    expect(await ids({ minRating: 1 })).toStrictEqual(['1']);
    expect(await ids({ minRating: -1 })).toStrictEqual(['1', '2']);
    expect(await ids({ model: 'other' })).toStrictEqual(['3']);
    expect(await ids({ where: ({ status }: { status: number }) => status >= 500 })).toStrictEqual(['4']);
  });

  it('gives preferences: corrections over replies, and the best over the worst reply to the same messages', async () => {
    const found = await all(fromRecorded(file, { as: 'preferences' }).pipe(toArray()));
    expect(found).toStrictEqual([
      {
        chosen: [...ask('c?'), { role: 'assistant', content: 'Sea.' }],
        rejected: [...ask('c?'), { role: 'assistant', content: 'C.' }],
      },
      {
        chosen: [...ask('a?'), { role: 'assistant', content: 'A.' }],
        rejected: [...ask('a?'), { role: 'assistant', content: 'B.' }],
      },
    ]);
    expect(await all(fromRecorded(file, { as: 'preferences', minRating: 2 }).pipe(toArray()))).toHaveLength(1);
  });

  it('gives tasks that evaluations take', async () => {
    const [first, , third] = await all(fromRecorded(file, { as: 'tasks' }).pipe(toArray()));
    expect(first).toStrictEqual({ id: '1', messages: ask('a?'), expected: 'A.' });
    expect(third).toMatchObject({ id: '3', expected: 'Sea.' });
  });

  it('ends with an error that names a line that cannot be read, or a file that is not there', async () => {
    writeFileSync(file, '{"type":"call"\n');
    await expect(all(fromRecorded(file).pipe(toArray()))).rejects.toThrow(/calls\.jsonl:1/);
    await expect(all(fromRecorded(join(folder, 'none.jsonl')).pipe(toArray()))).rejects.toThrow(/none\.jsonl/);
  });
});
