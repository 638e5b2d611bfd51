import { firstValueFrom, toArray } from 'rxjs';
import { expect, it } from 'vitest';
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
    reason: expect.stringMatching(/^expected one of: messages/) as string,
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
