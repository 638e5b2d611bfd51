/** `traffic`: recorded calls as files that the other commands take. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastValueFrom, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fromConversations, fromPreferences, fromRecorded } from '../../../src/sources/index.js';
import { run } from './terminal.js';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-cli-traffic-'));
  file = join(folder, 'calls.jsonl');
  const call = (id: string, day: number, said: string, more: object = {}) => ({
    ...{
      type: 'call',
      id,
      at: `2026-11-0${day}T10:00:00.000Z`,
      api: 'chat',
      model: 'large',
      status: 200,
      latencyMs: 1,
    },
    messages: [{ role: 'user', content: 'Capital of France?' }],
    reply: { role: 'assistant', content: said },
    ...more,
  });
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } };
  const tool_calls = [{ id: 'a', type: 'function', function: { name: 'look', arguments: '{"a":1}' } }];
  const lines = [
    call('1', 1, 'Paris'),
    call('2', 2, 'London'),
    call('3', 3, 'Rome', { model: 'other' }),
    call('4', 3, '', {
      messages: [{ role: 'user', content: [{ type: 'text', text: 'See:' }, image] }],
      reply: { role: 'assistant', content: '', tool_calls },
    }),
    { type: 'feedback', id: '1', rating: 1, at: '2026-11-04T00:00:00.000Z' },
    { type: 'feedback', id: '2', rating: -1, at: '2026-11-04T00:00:00.000Z' },
  ];
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
});
afterEach(() => rmSync(folder, { recursive: true }));

const printed = async (...flags: string[]) => {
  const { code, stdout, stderr } = await run(['traffic', file, ...flags]);
  expect(code, stderr).toBe(0);
  return { stderr, rows: stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as never])) };
};

describe('tinker-rx traffic', () => {
  it('prints conversations that were rated well, for train', async () => {
    const { rows, stderr } = await printed('--min-rating', '1');
    expect(rows).toStrictEqual([
      {
        messages: [
          { role: 'user', content: 'Capital of France?' },
          { role: 'assistant', content: 'Paris' },
        ],
      },
    ]);
    expect(stderr).toContain('1 conversation');
  });

  it('writes tasks of some days into a file, for eval', async () => {
    const output = join(folder, 'tasks.jsonl');
    const flags = ['--as', 'tasks', '--since', '2026-11-02', '--until', '2026-11-03', '-o', output];
    expect((await printed(...flags)).rows).toStrictEqual([]);
    expect(JSON.parse(readFileSync(output, 'utf8'))).toStrictEqual({
      id: '2',
      messages: [{ role: 'user', content: 'Capital of France?' }],
      expected: 'London',
    });
    const again = await run(['traffic', file, ...flags]);
    expect([again.code, again.stderr]).toStrictEqual([1, expect.stringContaining('already exists')]);
    expect((await run(['traffic', file, ...flags, '--force'])).code).toBe(0);
  });

  it.each(['conversations', 'preferences'] as const)('writes %s that are read as they were', async (as) => {
    const output = join(folder, 'rows.jsonl');
    await printed('--as', as, '-o', output);
    const [read, made] = await Promise.all(
      as === 'conversations'
        ? [lastValueFrom(fromConversations(output).pipe(toArray())), lastValueFrom(fromRecorded(file).pipe(toArray()))]
        : [
            lastValueFrom(fromPreferences(output).pipe(toArray())),
            lastValueFrom(fromRecorded(file, { as }).pipe(toArray())),
          ],
    );
    expect(made.length).toBe(as === 'conversations' ? 4 : 1);
    expect(read).toStrictEqual(made);
  });

  it('filters by model', async () => {
    expect((await printed('--as', 'calls', '-m', 'other')).rows).toMatchObject([{ id: '3' }]);
  });

  it('says what is wrong', async () => {
    const problem = async (...args: string[]) => (await run(['traffic', ...args])).stderr;
    expect(await problem(join(folder, 'none.jsonl'), '-o', join(folder, 'out'))).toContain('none.jsonl');
    expect(existsSync(join(folder, 'out'))).toBe(false);
    expect(await problem(file, '--since', 'yesterday')).toContain('Expected a date');
    expect(await problem(file, '--min-rating', '5')).toContain('No call');
  });
});
