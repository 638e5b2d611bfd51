// Rows that were changed or dropped on their way from the file, each named after what went wrong.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastValueFrom, type Observable, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fromCsv, fromJson, fromJsonl, fromParquet, type SourceEvent } from '../../src/sources/index.js';
import { CsvSplitter } from '../../src/sources/internal/csvSplitter.js';

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'encoding-'))));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
function file(content: string | Uint8Array, ending: string): string {
  const path = join(folder, `${files++}.${ending}`);
  writeFileSync(path, content);
  return path;
}
const all = <T>(source: Observable<T>) => lastValueFrom(source.pipe(toArray()));
const latin = (text: string) => Buffer.from(text, 'latin1');

describe('text that is not UTF-8', () => {
  // The same two rows; the second is in the encoding that spreadsheets write on Windows.
  const kinds = [
    ['CSV', 'csv', latin('name\ncafe\n"café, fin"\nthé\n'), fromCsv<{ name: string }>, [3, 4]],
    ['JSON', 'json', latin('[{"name":"cafe"},\n{"name":"café"}]'), fromJson<{ name: string }>, [2]],
    ['JSONL', 'jsonl', latin('{"name":"cafe"}\n{"name":"café"}\n'), fromJsonl<{ name: string }>, [2]],
  ] as const;

  it.each(kinds)('is a bad row of a %s file, where its letters became question marks', async (...kind) => {
    const [, ending, content, read, [line]] = kind;
    const path = file(content, ending);
    await expect(all(read(path))).rejects.toThrow(`${path}:${line}: not UTF-8`);
  });

  it.each(kinds)('is skipped in a %s file where bad rows are', async (...kind) => {
    const [, ending, content, read, lines] = kind;
    const skipped: SourceEvent[] = [];
    const onEvent = (event: SourceEvent) => event.type === 'row-skipped' && skipped.push(event);
    expect(await all(read(file(content, ending), { onBadRow: 'skip', onEvent }))).toStrictEqual([{ name: 'cafe' }]);
    expect(skipped).toMatchObject(lines.map((line) => ({ line, reason: 'not UTF-8' })));
  });

  it('is told where it is the header of a CSV file', async () => {
    const path = file(latin('prénom\nx\n'), 'csv');
    await expect(all(fromCsv(path))).rejects.toThrow(`${path}:1: the header: not UTF-8`);
  });

  it('is not what a replacement character in the file is', async () => {
    expect(await all(fromCsv(file('name\na\uFFFDb\n', 'csv')))).toStrictEqual([{ name: 'a\uFFFDb' }]);
  });

  it('is not what a character is whose bytes come in two chunks', () => {
    const bytes = Buffer.from('字😀é\nb\n');
    for (let cut = 0; cut <= bytes.length; cut++) {
      const splitter = new CsvSplitter(',', 1000);
      const parts = [bytes.subarray(0, cut), bytes.subarray(cut)];
      const records = [...parts.flatMap((part) => [...splitter.push(part)]), ...splitter.end()];
      expect(records).toStrictEqual([
        { line: 1, fields: ['字😀é'] },
        { line: 2, fields: ['b'] },
      ]);
    }
  });

  it('is what half a character at the end of the file is', async () => {
    const path = file(Buffer.concat([Buffer.from('name\na'), Buffer.from('字').subarray(0, 2)]), 'csv');
    await expect(all(fromCsv(path))).rejects.toThrow(`${path}:2: not UTF-8`);
  });
});

describe('a column that a CSV file names twice', () => {
  it('is an error', async () => {
    const path = file('question,answer,answer\na,b,c\n', 'csv');
    await expect(all(fromCsv(path))).rejects.toThrow(`${path}:1: the header names the column 'answer' twice`);
    expect(() => fromCsv(path, { columns: ['a', 'b', 'a'] })).toThrow("columns names 'a' twice");
  });
});

describe('an empty file', () => {
  it('is named as empty where its format needs content', async () => {
    const [json, parquet] = [file('', 'json'), file('', 'parquet')];
    await expect(all(fromJson(json))).rejects.toThrow(`${json}: the file is empty`);
    await expect(all(fromParquet(parquet))).rejects.toThrow(`${parquet}: the file is empty`);
    const short = file('PAR', 'parquet');
    await expect(all(fromParquet(short))).rejects.toThrow(`${short}: not a Parquet file`);
    expect(await all(fromJsonl(file('', 'jsonl')))).toStrictEqual([]);
    expect(await all(fromCsv(file('', 'csv')))).toStrictEqual([]);
  });
});
