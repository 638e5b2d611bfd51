import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import {
  concatMap,
  filter,
  firstValueFrom,
  from,
  lastValueFrom,
  map,
  type Observable,
  Subject,
  take,
  toArray,
} from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { batch } from '../../src/operators/data/batch.js';
import { concatMapAhead } from '../../src/operators/flow/concatMapAhead.js';
import {
  BadRowError,
  fromConversations,
  fromCsv,
  fromJson,
  fromJsonl,
  fromRowBatches,
  fromStdin,
  type SourceEvent,
  SourceError,
  toConversation,
} from '../../src/sources/index.js';

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'sources-'))));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function file(content: string | Uint8Array, ending = 'jsonl'): string {
  const path = join(folder, `${files++}.${ending}`);
  writeFileSync(path, content);
  return path;
}
const all = <T>(source: Observable<T>) => lastValueFrom(source.pipe(toArray()));
const failure = (source: Observable<unknown>) =>
  all(source).then(
    () => undefined,
    (error: unknown) => error,
  );

describe('fromJsonl', () => {
  it('emits one row a line, whatever the line ends, and passes over blank lines and a byte-order mark', async () => {
    expect(await all(fromJsonl(file('\uFEFF{"a":1}\r\n\n  \n{"a":"字"}\n[3]')))).toStrictEqual([
      { a: 1 },
      { a: '字' },
      [3],
    ]);
  });

  it('completes empty with an empty file', async () => {
    expect(await all(fromJsonl(file('')))).toStrictEqual([]);
  });

  it('takes a file URL', async () => {
    expect(await all(fromJsonl(pathToFileURL(file('1\n2\n'))))).toStrictEqual([1, 2]);
  });

  it('keeps rows whole wherever chunks are cut, with characters of many bytes', async () => {
    const rows = Array.from({ length: 3000 }, (_, place) => ({ place, text: '字🙂'.repeat(place % 97) }));
    rows[1500]!.text = '长'.repeat(400_000);
    expect(await all(fromJsonl(file(rows.map((row) => JSON.stringify(row)).join('\n'))))).toStrictEqual(rows);
  });

  it('decompresses by ending, several members too, and counts the bytes on disk', async () => {
    const packed = Buffer.concat([gzipSync('1\n2\n'), gzipSync('3\n')]);
    const events: SourceEvent[] = [];
    const path = file(packed, 'jsonl.gz');
    expect(await all(fromJsonl(path, { onEvent: (event) => events.push(event) }))).toStrictEqual([1, 2, 3]);
    expect(events.at(-1)).toStrictEqual({
      type: 'source-progress',
      file: path,
      bytes: packed.length,
      totalBytes: packed.length,
      rows: 3,
      badRows: 0,
      untrainedRows: 0,
      done: true,
    });
  });

  it('ends with an error naming file and line', async () => {
    const path = file('{"a":1}\n\n{"a":\n{"a":2}\n');
    const error = await failure(fromJsonl(path));
    expect(error).toBeInstanceOf(BadRowError);
    expect(error).toMatchObject({ code: 'bad_row', file: path, line: 3, retryable: false });
    expect((error as Error).message).toMatch(new RegExp(`^${path}:3: .*JSON`));
  });

  it('emits the rows before the bad one first', async () => {
    const seen: unknown[] = [];
    await new Promise<void>((done) =>
      fromJsonl(file('1\n2\nx\n4\n')).subscribe({ next: (row) => seen.push(row), error: () => done() }),
    );
    expect(seen).toStrictEqual([1, 2]);
  });

  it('skips, counts and reports bad rows when told to: no JSON, no UTF-8, refused by decode', async () => {
    const path = file(
      Buffer.concat([Buffer.from('1\nx\n'), Buffer.from([0x22, 0xff, 0x22, 0x0a]), Buffer.from('-4\n5\n')]),
    );
    const events: SourceEvent[] = [];
    const decode = (row: unknown) => {
      if ((row as number) < 0) throw new Error('must be positive');
      return Number(row);
    };
    const rows = fromJsonl(path, { decode, onBadRow: 'skip', onEvent: (event) => events.push(event) });
    expect(await all(rows)).toStrictEqual([1, 5]);
    expect(events.filter(({ type }) => type === 'row-skipped')).toStrictEqual([
      { type: 'row-skipped', file: path, line: 2, reason: expect.stringContaining('JSON') as string },
      { type: 'row-skipped', file: path, line: 3, reason: 'not UTF-8' },
      { type: 'row-skipped', file: path, line: 4, reason: 'must be positive' },
    ]);
    expect(events.at(-1)).toMatchObject({ rows: 2, badRows: 3, done: true });
  });

  it('names a file that is not there, and one whose compression is broken', async () => {
    const missing = join(folder, 'none.jsonl');
    const gone = await failure(fromJsonl(missing));
    expect(gone).toBeInstanceOf(SourceError);
    expect((gone as Error).message).toMatch(new RegExp(`^${missing}: ENOENT`));
    const cut = file(gzipSync('1\n'.repeat(1000)).subarray(0, 20), 'jsonl.gz');
    expect(((await failure(fromJsonl(cut))) as Error).message).toBe(`${cut}: unexpected end of file`);
  });

  it('reports progress that grows', async () => {
    const path = file(`${JSON.stringify('x'.repeat(1000))}\n`.repeat(2000));
    const bytes: number[] = [];
    await all(fromJsonl(path, { onEvent: (event) => event.type === 'source-progress' && bytes.push(event.bytes) }));
    expect(bytes.length).toBeGreaterThan(5);
    expect(bytes).toStrictEqual(bytes.toSorted((a, b) => a - b));
    expect(bytes.at(-1)).toBe(2000 * 1003);
  });

  it('opens the file anew for every subscriber, and never before', async () => {
    const path = join(folder, 'late.jsonl');
    const rows = fromJsonl(path);
    writeFileSync(path, '1\n');
    expect([await all(rows), await all(rows)]).toStrictEqual([[1], [1]]);
  });

  it('stops reading when its subscriber has enough', async () => {
    const path = file('{"a":1}\n'.repeat(500_000));
    const events: SourceEvent[] = [];
    const rows = fromJsonl(path, { onEvent: (event) => events.push(event) });
    expect(await all(rows.pipe(take(3)))).toHaveLength(3);
    await sleep(50);
    expect(events).toStrictEqual([]);
  });

  it('pauses while what is downstream is full, through plain operators', async () => {
    const path = file(Array.from({ length: 100_000 }, (_, place) => `{"place":${place}}\n`).join(''));
    const calls: Subject<never>[] = [];
    let read = 0;
    const trained: number[] = [];
    const subscription = fromJsonl<{ place: number }>(path)
      .pipe(
        map(({ place }) => {
          read++;
          return place;
        }),
        filter((place) => place % 2 === 0),
        batch({ size: 10 }),
        concatMapAhead(
          (places) => {
            trained.push(...places);
            const call = new Subject<never>();
            calls.push(call);
            return call;
          },
          { ahead: 1 },
        ),
      )
      .subscribe();
    // However long a busy machine takes to get there, it reads no further.
    while (read < 39) await sleep(1);
    await sleep(50);
    expect([calls.length, read]).toStrictEqual([2, 39]);
    calls[0]!.complete();
    while (read < 59) await sleep(1);
    await sleep(20);
    expect([calls.length, read]).toStrictEqual([3, 59]);
    expect(trained).toStrictEqual(Array.from({ length: 30 }, (_, place) => place * 2));
    subscription.unsubscribe();
  });

  it('pauses the second of two files too', async () => {
    const paths = [file('1\n2\n'), file('3\n'.repeat(1000))];
    const read: unknown[] = [];
    const calls: Subject<never>[] = [];
    const subscription = from(paths)
      .pipe(
        concatMap((path) => fromJsonl(path)),
        concatMapAhead(
          (row) => {
            read.push(row);
            const call = new Subject<never>();
            calls.push(call);
            if (calls.length <= 2) call.complete();
            return call;
          },
          { ahead: 0 },
        ),
      )
      .subscribe();
    // However long a busy machine takes to get there, it reads no further.
    while (read.length < 3) await sleep(1);
    await sleep(50);
    expect(read).toStrictEqual([1, 2, 3]);
    subscription.unsubscribe();
  });
});

describe('fromRowBatches', () => {
  it('passes errors of the iterable, and of a batch while it is walked through', async () => {
    const rows = fromRowBatches(async function* () {
      yield [1];
      throw new Error('gone');
    });
    expect(await failure(rows)).toStrictEqual(new Error('gone'));
    const inBatch = fromRowBatches(async function* () {
      yield (function* () {
        yield 1;
        throw new Error('torn');
      })();
    });
    expect(await failure(inBatch)).toStrictEqual(new Error('torn'));
  });

  it('returns the iterator and aborts the signal when unsubscribed', async () => {
    const log: string[] = [];
    const rows = fromRowBatches(async function* (signal) {
      signal.addEventListener('abort', () => log.push('aborted'));
      try {
        for (;;) yield [1, 2];
      } finally {
        log.push('returned');
      }
    });
    expect(await firstValueFrom(rows)).toBe(1);
    await expect.poll(() => log).toStrictEqual(['aborted', 'returned']);
  });

  it('asks for the next batch only when the last is out', async () => {
    let asked = 0;
    const rows = fromRowBatches(async function* () {
      for (;;) {
        asked++;
        yield [1, 2, 3];
      }
    });
    expect(await all(rows.pipe(take(4)))).toStrictEqual([1, 2, 3, 1]);
    expect(asked).toBe(2);
  });
});

describe('fromStdin', () => {
  it('reads JSONL from what it is given, texts and bytes', async () => {
    const events: SourceEvent[] = [];
    const input = Readable.from(['{"a":', Buffer.from('1}\n2')]);
    expect(await all(fromStdin({ input, onEvent: (event) => events.push(event) }))).toStrictEqual([{ a: 1 }, 2]);
    expect(events.at(-1)).toStrictEqual({
      type: 'source-progress',
      file: 'stdin',
      bytes: 9,
      rows: 2,
      badRows: 0,
      untrainedRows: 0,
      done: true,
    });
  });

  it('names stdin and the line of a bad row', async () => {
    expect(await failure(fromStdin({ input: Readable.from(['1\n?']) }))).toMatchObject({ file: 'stdin', line: 2 });
  });

  it('closes an input that stays silent when unsubscribed', async () => {
    const input = new PassThrough();
    fromStdin({ input }).subscribe().unsubscribe();
    await expect.poll(() => input.destroyed).toBe(true);
  });
});

describe('fromJson', () => {
  it('emits the elements of an array', async () => {
    const text = '\uFEFF [ {"a":[1,{"b":"],[\\"}"}]} ,\n 2, "x,y" , null,[],true ]\n';
    const rows = [{ a: [1, { b: '],["}' }] }, 2, 'x,y', null, [], true];
    expect(await all(fromJson(file(text, 'json')))).toStrictEqual(rows);
  });

  it('completes empty with an empty array', async () => {
    expect(await all(fromJson(file('[ ]', 'json')))).toStrictEqual([]);
  });

  it('reads back any array, wherever chunks are cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.jsonValue()), fc.boolean(), async (rows, pretty) => {
        const path = file(JSON.stringify(rows, undefined, pretty ? 2 : undefined), 'json');
        expect(await all(fromJson(path))).toStrictEqual(JSON.parse(JSON.stringify(rows)));
      }),
      { numRuns: 50 },
    );
    const rows = Array.from({ length: 20_000 }, (_, place) => ({ place, text: '字"\\[{' }));
    expect(await all(fromJson(file(JSON.stringify(rows), 'json')))).toStrictEqual(rows);
  });

  it('names the line a bad element starts on', async () => {
    const path = file('[1,\n2,\n  {"a":\n oops},4]', 'json');
    expect(await failure(fromJson(path))).toMatchObject({ code: 'bad_row', file: path, line: 3 });
    expect(await all(fromJson(path, { onBadRow: 'skip' }))).toStrictEqual([1, 2, 4]);
  });

  it('takes a missing element for a bad one', async () => {
    expect(await failure(fromJson(file('[1,,2]', 'json')))).toBeInstanceOf(BadRowError);
    expect(await failure(fromJson(file('[1,]', 'json')))).toBeInstanceOf(BadRowError);
  });

  it.each([
    ['{"a":1}', ':1: expected a JSON array of rows; a file with one row on each line should end in .jsonl'],
    ['', ': the file is empty'],
    ['[1,\n2', ':2: the JSON array does not end'],
    ['[1]\n[2]', ':2: more text after the JSON array'],
  ])('refuses %j', async (text, message) => {
    const path = file(text, 'json');
    expect(((await failure(fromJson(path))) as Error).message).toBe(path + message);
  });
});

describe('fromCsv', () => {
  it('emits objects by the header', async () => {
    const text = '\uFEFFquestion,answer\r\n1+1?,2\r\n"a, ""b""\nand c",字\n\n,\n';
    expect(await all(fromCsv(file(text, 'csv')))).toStrictEqual([
      { question: '1+1?', answer: '2' },
      { question: 'a, "b"\nand c', answer: '字' },
      { question: '', answer: '' },
    ]);
  });

  it('takes column names and a delimiter, and a tab for .tsv', async () => {
    const columns = ['a', 'b'];
    expect(await all(fromCsv(file('1;2\n', 'csv'), { columns, delimiter: ';' }))).toStrictEqual([{ a: '1', b: '2' }]);
    expect(await all(fromCsv(file(gzipSync('x\ty\n1\t2'), 'tsv.gz')))).toStrictEqual([{ x: '1', y: '2' }]);
  });

  it('reads back whatever is written, wherever chunks are cut', async () => {
    const field = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r', '字', ' ') });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(field, field)), fc.constantFrom('\n', '\r\n'), async (rows, end) => {
        const quoted = rows.map((row) => row.map((text) => `"${text.replaceAll('"', '""')}"`).join(',') + end).join('');
        const read = await all(fromCsv(file(quoted, 'csv'), { columns: ['a', 'b'] }));
        expect(read).toStrictEqual(rows.map(([a, b]) => ({ a, b })));
      }),
      { numRuns: 50 },
    );
    const long = Array.from({ length: 50_000 }, (_, place) => ({ place: String(place), text: 'x,"\r\n字' }));
    const text = 'place,text\n' + long.map(({ place }) => `${place},"x,""\r\n字"\n`).join('');
    expect(await all(fromCsv(file(text, 'csv')))).toStrictEqual(long);
  });

  it('names the line a bad record starts on, counting line ends inside quotes', async () => {
    const path = file('a,b\n"1\n1",2\n3\n"4"x,5\n6,7\n8,"9', 'csv');
    const events: SourceEvent[] = [];
    expect(await failure(fromCsv(path))).toMatchObject({ line: 4, reason: 'expected 2 fields, got 1' });
    const rows = await all(fromCsv(path, { onBadRow: 'skip', onEvent: (event) => events.push(event) }));
    expect(rows).toStrictEqual([
      { a: '1\n1', b: '2' },
      { a: '6', b: '7' },
    ]);
    expect(events.flatMap((event) => (event.type === 'row-skipped' ? [[event.line, event.reason]] : []))).toStrictEqual(
      [
        [4, 'expected 2 fields, got 1'],
        [5, 'text after a closing quote'],
        [7, 'a quoted field does not end'],
      ],
    );
  });

  it.each(['', ',,', '"', '\n'])('refuses delimiter %j', (delimiter) => {
    expect(() => fromCsv('x.csv', { delimiter })).toThrow(RangeError);
  });
});

describe('fromConversations', () => {
  const pair = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'ho' },
  ];

  it.each<[string, string, string]>([
    ['messages', 'jsonl', JSON.stringify({ id: 7, messages: pair })],
    ['a bare array', 'ndjson', JSON.stringify(pair)],
    ['ShareGPT', 'jsonl', '{"conversations":[{"from":"human","value":"hi"},{"from":"gpt","value":"ho"}]}'],
    [
      'ShareGPT in a JSON array',
      'json',
      '[{"conversations":[{"from":"human","value":"hi"},{"from":"gpt","value":"ho"}]}]',
    ],
    ['Alpaca', 'json', '[{"instruction":"hi","input":"","output":"ho"}]'],
    ['Alpaca as CSV', 'csv', 'instruction,input,output\nhi,,ho\n'],
    ['prompt and completion', 'jsonl', '{"prompt":"hi","completion":"ho"}'],
    [
      'prompt and completion as messages',
      'jsonl',
      JSON.stringify({ prompt: pair.slice(0, 1), completion: pair.slice(1) }),
    ],
  ])('reads %s', async (_, ending, text) => {
    expect(await all(fromConversations(file(text, ending)))).toStrictEqual([{ messages: pair }]);
    const packed = fromConversations(file(gzipSync(text), `${ending}.gz`));
    expect(await all(packed)).toStrictEqual([{ messages: pair }]);
  });

  it('makes a row of no known form a bad row', async () => {
    const path = file('{"messages":[{"role":"user","content":"a"}]}\n{"text":"b"}\n{"messages":[]}\n');
    const error = await failure(fromConversations(path));
    expect(error).toMatchObject({ code: 'bad_row', line: 2 });
    expect((error as Error).message).toContain('expected one of: messages, conversations');
    expect(await all(fromConversations(path, { onBadRow: 'skip' }))).toHaveLength(1);
  });

  it('refuses a file whose ending says nothing', () => {
    expect(() => fromConversations('chats.bin')).toThrow(RangeError);
  });
});

describe('toConversation', () => {
  it('keeps system prompts, input and history', () => {
    const row = { system: 's', instruction: 'i', input: 'n', output: 'o', history: [['q', 'a']] };
    expect(toConversation(row).messages.map(({ role, content }) => `${role}: ${content as string}`)).toStrictEqual([
      'system: s',
      'user: q',
      'assistant: a',
      'user: i\n\nn',
      'assistant: o',
    ]);
  });

  it("keeps tool calls in OpenAI's form", () => {
    const call = { id: 'c1', type: 'function', function: { name: 'add', arguments: '{"a":1}' } };
    const row = {
      messages: [
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', content: [{ type: 'text', text: '2' }], tool_call_id: 'c1', name: 'add' },
      ],
    };
    expect(toConversation(row).messages).toStrictEqual([
      { role: 'assistant', content: '', toolCalls: [{ name: 'add', arguments: '{"a":1}', id: 'c1' }] },
      { role: 'tool', content: '2', toolCallId: 'c1', name: 'add' },
    ]);
  });

  it.each<[unknown, string]>([
    [1, 'expected an object or an array of messages'],
    [{ messages: [{ role: 'user' }] }, 'messages[0].content must be a string'],
    [{ messages: [{ content: 'x' }] }, 'messages[0].role must be a string'],
    [{ messages: [7] }, 'messages[0] must be an object'],
    [{ messages: [] }, 'messages holds no message'],
    [
      { conversations: [{ from: 'alien', value: 'x' }] },
      "conversations[0].from is 'alien', which is not a known speaker",
    ],
    [{ instruction: 'a', output: 5 }, 'output must be a string'],
    [{ messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, 'messages[0].content[0] has no image'],
  ])('says what is wrong with %j', (row, message) => {
    expect(() => toConversation(row)).toThrow(message);
  });
});
