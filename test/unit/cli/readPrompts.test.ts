import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { firstValueFrom, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readPrompts, type PromptOptions } from '../../../src/cli/sample/readPrompts.js';
import { contextOf } from './terminal.js';

const read = (input: string, options: Partial<PromptOptions> = {}) =>
  firstValueFrom(readPrompts(contextOf({ input }).context, { words: [], ...options }).prompts.pipe(toArray()));
const user = (content: string) => ({ role: 'user', content });

it('takes the words of the command line as one prompt', async () => {
  expect(await read('ignored', { words: ['Who', 'are you?'] })).toStrictEqual([
    { kind: 'chat', messages: [user('Who are you?')], source: 'Who are you?', alone: true },
  ]);
});

it('takes a line of text, a JSON string, {prompt} and {messages} each as a prompt', async () => {
  const lines = [
    'plain',
    '',
    '"quoted\\nline"',
    '{"prompt":"p","id":3}',
    '{"messages":[{"role":"user","content":"m"}]}',
  ];
  expect((await read(lines.join('\r\n'))).map((prompt) => prompt.kind === 'chat' && prompt.messages)).toStrictEqual([
    [user('plain')],
    [user('quoted\nline')],
    [user('p')],
    [user('m')],
  ]);
});

it('keeps what the user wrote for the results', async () => {
  expect((await read('{"prompt":"p","id":3}'))[0]!.source).toStrictEqual({ prompt: 'p', id: 3 });
});

it('takes text that only looks like JSON as text, and a broken object as a mistake', async () => {
  expect((await read('[citation needed]'))[0]!.source).toBe('[citation needed]');
  expect(await read('fine\n{"prompt":\nfine too')).toMatchObject([
    { kind: 'chat', line: 1 },
    { kind: 'bad', line: 2, reason: 'not JSON' },
    { kind: 'chat', line: 3 },
  ]);
  expect((await read('{"a":1}'))[0]).toMatchObject({
    reason: expect.stringMatching(/^no column of prompts: none of messages/) as string,
  });
});

it('puts the system message first, or leaves the text as it is', async () => {
  expect(await read('hi', { system: 'be brief' })).toStrictEqual([
    { kind: 'chat', messages: [{ role: 'system', content: 'be brief' }, user('hi')], source: 'hi', line: 1 },
  ]);
  expect(await read('hi', { raw: true })).toStrictEqual([{ kind: 'text', text: 'hi', source: 'hi', line: 1 }]);
});

it('takes everything as one prompt if asked to', async () => {
  expect((await read('a\nb\n', { whole: true }))[0]!.source).toBe('a\nb');
});

it('fails with the file that is not there before anything else is done', () => {
  expect(() => read('', { file: '/nowhere/x.txt' })).toThrow(/ENOENT.*\/nowhere\/x\.txt/);
});

describe('a file of prompts', () => {
  let folder: string;
  beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'prompts-'))));
  afterAll(() => rmSync(folder, { recursive: true }));
  const readFile = (name: string, content: string | Uint8Array, options: Partial<PromptOptions> = {}) => {
    const file = join(folder, name);
    writeFileSync(file, content);
    return read('', { file, ...options });
  };
  const sources = async (...given: Parameters<typeof readFile>) =>
    (await readFile(...given)).map(({ source, line }) => [source, line]);

  it('has no byte-order mark in its first prompt', async () => {
    expect(await sources('bom.jsonl', '\uFEFF{"prompt":"a"}\r\nb\r\n')).toStrictEqual([
      [{ prompt: 'a' }, 1],
      ['b', 2],
    ]);
    expect(await sources('bom.txt', '\uFEFFa\r\n', { whole: true })).toStrictEqual([['a', undefined]]);
  });

  it('is unpacked', async () => {
    expect(await sources('packed.txt.gz', gzipSync('a\n\nb\n'))).toStrictEqual([
      ['a', 1],
      ['b', 3],
    ]);
  });

  it('that is not UTF-8 is reported line by line', async () => {
    expect(await readFile('latin.txt', Buffer.from('cafe\ncaf\xe9\n', 'latin1'))).toMatchObject([
      { kind: 'chat', line: 1 },
      { kind: 'bad', reason: 'not UTF-8', line: 2 },
    ]);
    const wide = await readFile('wide.txt', Buffer.from('\uFEFFa\nb\n', 'utf16le'));
    expect(wide.map(({ kind }) => kind)).toStrictEqual(['bad', 'bad', 'bad']);
    await expect(readFile('latin.txt', Buffer.from('caf\xe9', 'latin1'), { whole: true })).rejects.toThrow('not UTF-8');
  });

  it('may be a JSON array, and keeps bad rows in their place', async () => {
    const rows = '[\n  {"prompt": "a"},\n  oops,\n  "b",\n  {"id": 1}\n, oops]';
    expect(await readFile('rows.json', rows)).toMatchObject([
      { kind: 'chat', source: { prompt: 'a' }, line: 2 },
      { kind: 'bad', line: 3 },
      { kind: 'chat', source: 'b', line: 4 },
      { kind: 'bad', line: 5, reason: expect.stringMatching(/^no column of prompts: none of messages/) as string },
      { kind: 'bad', line: 6 },
    ]);
  });

  it('may be a CSV file', async () => {
    expect(await sources('rows.csv', 'prompt,id\n"a\nb",1\nc,2\n')).toStrictEqual([
      [{ prompt: 'a\nb', id: '1' }, 2],
      [{ prompt: 'c', id: '2' }, 4],
    ]);
  });

  it('is no folder', () => {
    expect(() => read('', { file: folder })).toThrow(`${folder}: is a folder`);
  });

  it('tells how much of it was asked for', async () => {
    const file = join(folder, 'share.txt');
    writeFileSync(file, 'a\nb\nc\nd\n');
    const { prompts, share } = readPrompts(contextOf().context, { words: [], file });
    expect(share()).toBe(0);
    await firstValueFrom(prompts);
    expect(share()).toBe(0.25);
  });
});

it('takes characters whole that come in two pieces', async () => {
  const stdin = new PassThrough();
  const bytes = Buffer.from('字');
  const { prompts } = readPrompts({ ...contextOf().context, stdin }, { words: [], whole: true });
  const found = firstValueFrom(prompts);
  stdin.write(bytes.subarray(0, 1));
  await turn();
  stdin.end(bytes.subarray(1));
  expect((await found).source).toBe('字');
});

it('lets go of standard input when nobody waits for a prompt any more', () => {
  const stdin = new PassThrough();
  readPrompts({ ...contextOf().context, stdin }, { words: [] })
    .prompts.subscribe()
    .unsubscribe();
  expect(stdin.destroyed).toBe(true);
});

it('has no prompt in words that are blank', () => {
  expect(() => read('', { words: [''] })).toThrow('No prompt');
});
