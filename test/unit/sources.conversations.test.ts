import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { from, lastValueFrom, type Observable, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RendererError, type Message, type Renderer } from '../../src/chat/renderers/index.js';
import { getRenderer } from '../../src/chat/renderers/registry.js';
import { ByteTokenizer } from '../../src/chat/tokenizer/index.js';
import { shuffle, toDatums, type ToDatumsOptions, toPairs } from '../../src/operators/index.js';
import {
  BadRowError,
  fromConversations,
  fromPreferences,
  type SourceEvent,
  toConversation,
} from '../../src/sources/index.js';
import type { Datum } from '../../src/wire/datum.js';
import { kinds } from './chat/rendererKinds.js';

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'conversations-'))));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
function file(...rows: unknown[]): string {
  const path = join(folder, `${files++}.jsonl`);
  writeFileSync(path, rows.map((row) => `${typeof row === 'string' ? row : JSON.stringify(row)}\n`).join(''));
  return path;
}
const all = <T>(source: Observable<T>) => lastValueFrom(source.pipe(toArray()));
const bytes = getRenderer('tinker_rx_bytes', new ByteTokenizer());
const datumsOf = (row: unknown, renderer: Renderer, options: ToDatumsOptions<never> = {}) =>
  all(fromConversations(file(row)).pipe(toDatums(renderer, options)));
const input = (renderer: Renderer, { modelInput, lossFnInputs: { target_tokens: targets } }: Datum): string => {
  const last = (targets as { data: ArrayLike<number | bigint> }).data;
  const text = modelInput.chunks.map((chunk) =>
    chunk.type === 'encoded_text' ? renderer.tokenizer.decode(chunk.tokens) : `[${chunk.type}]`,
  );
  return text.join('') + renderer.tokenizer.decode([Number(last[last.length - 1])]);
};
/** The text of the tokens that carry loss. */
const trained = (renderer: Renderer, { lossFnInputs }: Datum): string => {
  const [targets, weights] = ['target_tokens', 'weights'].map((name) =>
    Array.from((lossFnInputs[name] as { data: ArrayLike<number | bigint> }).data, Number),
  );
  return renderer.tokenizer.decode(targets!.filter((_, place) => weights![place]! > 0));
};
const user = { role: 'user', content: 'hi' };
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='; // A PNG of one pixel, written by hand.

describe('reasoning_content', () => {
  const rows = ['reasoning_content', 'reasoning', 'thinking'].map((field) => ({
    messages: [user, { role: 'assistant', content: 'ho', [field]: 'because of it' }],
  }));
  const inline = { messages: [user, { role: 'assistant', content: '<think>\nbecause of it\n</think>\n\nho' }] };

  it.each(kinds().map((kind) => [kind.renderer.name, kind] as const))(
    'is trained on in the way of %s, or refused',
    async (_, { renderer, thinking }) => {
      for (const row of [...rows, inline]) {
        const datums = await datumsOf(row, renderer).catch((error: unknown) => error);
        if (!thinking && datums instanceof BadRowError) {
          expect(datums.cause).toBeInstanceOf(RendererError);
          continue;
        }
        if (renderer.leavesOutThinking !== true) {
          expect(trained(renderer, (datums as Datum[])[0]!)).toContain('because of it');
          continue;
        }
        // The cookbook's tokens leave it out: then it is told.
        const events: SourceEvent[] = [];
        await all(fromConversations(file(row), { onEvent: (event) => events.push(event) }).pipe(toDatums(renderer)));
        expect(events).toContainEqual(expect.objectContaining({ field: 'messages[].reasoning_content', rows: 1 }));
      }
    },
  );

  it('is left out without an error by deepseekv3 alone', () => {
    const names = kinds().flatMap(({ renderer }) => (renderer.leavesOutThinking === true ? [renderer.name] : []));
    expect(names).toStrictEqual(['deepseekv3', 'deepseekv3_disable_thinking']);
  });

  it('of a conversation gives the same tokens as a thinking part', async () => {
    const { renderer } = kinds().find((kind) => kind.renderer.name === 'qwen3')!;
    const parts = [
      { type: 'thinking', thinking: 'because of it' },
      { type: 'text', text: 'ho' },
    ];
    const own = await all(from([[user, { role: 'assistant', content: parts }]]).pipe(toDatums(renderer)));
    for (const row of [...rows, inline]) expect(await datumsOf(row, renderer)).toStrictEqual(own);
    expect(await all(from([...rows, inline]).pipe(toDatums(renderer)))).toStrictEqual(Array(4).fill(own[0]));
  });
});

describe('tools beside the messages', () => {
  const add = { name: 'add_two', description: 'Adds.', parameters: { type: 'object', properties: {} } };
  const call = { id: 'functions.add_two:0', type: 'function', function: { name: 'add_two', arguments: '{"a": 1}' } };
  const row = {
    tools: [{ type: 'function', function: add }],
    messages: [
      { role: 'system', content: 'Be brief.' },
      user,
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'functions.add_two:0', name: 'add_two', content: '2' },
      { role: 'assistant', content: 'two' },
    ],
  };

  it.each(kinds().map((kind) => [kind.renderer.name, kind] as const))(
    'are declared in the way of %s, or refused',
    async (_, { renderer, tools }) => {
      const datums = await datumsOf(row, renderer).catch((error: unknown) => error);
      if (!tools && datums instanceof BadRowError) {
        expect(datums.cause).toBeInstanceOf(RendererError);
        return;
      }
      const [declared] = renderer.declareTools([add], 'Be brief.');
      const messages = [declared!, ...toConversation(row).messages.slice(1)];
      expect(datums).toStrictEqual(await all(from([messages]).pipe(toDatums(renderer))));
      if (renderer.name !== 'chat_template') expect(input(renderer, (datums as Datum[])[0]!)).toContain('Adds.');
    },
  );

  it('are read from JSON text, and from ShareGPT with its calls', () => {
    const conversations = [
      { from: 'human', value: 'hi' },
      { from: 'function_call', value: '{"name": "add_two", "arguments": {"a": 1}}' },
      { from: 'observation', value: '2' },
      { from: 'gpt', value: 'two' },
    ];
    expect(toConversation({ conversations, tools: JSON.stringify([add]) })).toStrictEqual({
      tools: [add],
      messages: [
        user,
        { role: 'assistant', content: '', toolCalls: [{ name: 'add_two', arguments: '{"a": 1}' }] },
        { role: 'tool', content: '2' },
        { role: 'assistant', content: 'two' },
      ],
    });
  });

  it("are read with OpenAI's older function_call", () => {
    const messages = [
      { role: 'assistant', content: null, function_call: { name: 'add_two', arguments: '{}' } },
      { role: 'function', name: 'add_two', content: '2' },
    ];
    expect(toConversation({ messages }).messages).toStrictEqual([
      { role: 'assistant', content: '', toolCalls: [{ name: 'add_two', arguments: '{}' }] },
      { role: 'tool', name: 'add_two', content: '2' },
    ]);
  });

  it('come where there is no system message, and not twice', async () => {
    const messages = row.messages.slice(1);
    const [datum] = await datumsOf({ ...row, messages }, bytes);
    expect(input(bytes, datum!)).toContain('"name": "add_two"');
    const twice = { ...row, messages: [{ role: 'system', content: '', tools: [add] }, ...messages] };
    await expect(datumsOf(twice, bytes)).rejects.toThrow('declared twice');
  });

  it('take part in customized training', async () => {
    const flagged = row.messages.map((message, place) => ({ ...message, trainable: place === 4 }));
    const options = { trainOn: 'customized' as never };
    const [datum] = await datumsOf({ ...row, messages: flagged }, bytes, options);
    expect(trained(bytes, datum!)).toContain('two');
    expect(trained(bytes, datum!)).not.toContain('Adds.');
  });

  it.each<[unknown, string]>([
    [{ tools: 7 }, 'tools must be a list of tools'],
    [{ tools: 'no' }, 'tools is text that is not valid JSON'],
    [{ tools: [{}] }, 'tools[0] has no name'],
  ])('that are none are a bad row: %j', (beside, message) => {
    expect(() => toConversation({ messages: [user], ...(beside as object) })).toThrow(message);
  });

  it.each(['role_colon', 'llama3'])('and calls are refused by %s, which cannot write them', (name) => {
    const { renderer } = kinds().find((kind) => kind.renderer.name === name)!;
    const calling: Message = { role: 'assistant', content: '', toolCalls: [{ name: 'f', arguments: '{}' }] };
    expect(() => renderer.buildSupervisedExample([user, calling])).toThrow('has no way to write tool calls');
    expect(() => renderer.buildGenerationPrompt([{ role: 'system', content: '', tools: [add] }, user])).toThrow(
      'has no way to declare tools',
    );
  });
});

describe("OpenAI's weight", () => {
  const turns = (...weights: (number | undefined)[]) => ({
    messages: weights.flatMap((weight, place) => [
      user,
      { role: 'assistant', content: `answer ${place}`, ...(weight === undefined ? {} : { weight }) },
    ]),
  });

  it.each(kinds().map((kind) => [kind.renderer.name, kind.renderer] as const))(
    'of 0 takes the loss from an answer with %s, and leaves it to the others',
    async (_, renderer) => {
      const text = (await datumsOf(turns(1, 0, undefined), renderer)).map((datum) => trained(renderer, datum)).join();
      expect(['answer 0', 'answer 1', 'answer 2'].map((answer) => text.includes(answer))).toStrictEqual([
        true,
        false,
        true,
      ]);
    },
  );

  it('leaves the choice to trainOn where that is given', async () => {
    const options = { trainOn: 'last_assistant_message' as never };
    expect(trained(bytes, (await datumsOf(turns(1, 1), bytes, options))[0]!)).toBe('answer 1<|end|>');
    const everything = { trainOn: 'all_tokens' as never };
    expect(trained(bytes, (await datumsOf(turns(0, 1), bytes, everything))[0]!)).not.toContain('answer 0');
  });

  it('that is neither 0 nor 1 is a bad row', async () => {
    await expect(datumsOf(turns(0.5), bytes)).rejects.toThrow(/:1: messages\[1\]\.weight must be 0 or 1$/);
  });
});

describe('image parts', () => {
  const image = (part: unknown, beside: object = {}) => ({
    messages: [
      { role: 'user', content: [part, { type: 'text', text: 'what?' }] },
      { role: 'assistant', content: 'a dot' },
    ],
    ...beside,
  });
  const uri = `data:image/png;base64,${PIXEL}`;

  it.each(kinds().map((kind) => [kind.renderer.name, kind.renderer] as const))(
    'reach %s, or are refused by it',
    async (_, renderer) => {
      const row = image({ type: 'image_url', image_url: { url: uri } });
      const datums = await datumsOf(row, renderer).catch((error: unknown) => error);
      if (datums instanceof BadRowError) return expect(datums.cause).toBeInstanceOf(RendererError);
      expect(input(renderer, (datums as Datum[])[0]!)).toContain('[image]');
    },
  );

  it.each<[string, unknown, object]>([
    ['a data: URI', { type: 'image_url', image_url: uri }, {}],
    ['base64', { type: 'image', data: PIXEL }, {}],
    ['the row’s images', { type: 'image' }, { images: [uri] }],
  ])('are read from %s', (_, part, beside) => {
    const [{ content }] = toConversation(image(part, beside)).messages as [Message];
    expect(content).toMatchObject([{ type: 'image', format: 'png' }, { type: 'text' }]);
  });

  it('are read from the bytes that Parquet keeps', () => {
    const data = new Uint8Array(Buffer.from(PIXEL, 'base64'));
    const row = image({ type: 'image' }, { images: [{ bytes: data, path: 'dot.png' }] });
    expect(toConversation(row).messages[0]).toMatchObject({ content: [{ type: 'image', data }, {}] });
  });

  it.each([
    { type: 'image_url', image_url: 'https://host/dot.png' },
    { type: 'image', image: 'photos/dot' },
    { type: 'image' },
    { type: 'smell' },
  ])('that cannot be read are a bad row: %j', (part) => {
    expect(() => toConversation(image(part))).toThrow('messages[0].content[0]');
  });

  it('of the row that no part stands for are told', () => {
    const unused: string[] = [];
    toConversation({ messages: [user], images: [uri] }, (field) => unused.push(field));
    expect(unused).toStrictEqual(['images']);
  });
});

describe('a field that is not used', () => {
  it('is counted, and named once, at the end of the file', async () => {
    const answer = { role: 'assistant', content: 'ho', annotations: [1], audio: null };
    const path = file(
      { id: 1, messages: [user, answer, answer] },
      { id: 2, score: 3, messages: [user, { role: 'assistant', content: 'ho' }] },
      { id: 3, text: 'a bad row tells nothing' },
    );
    const events: SourceEvent[] = [];
    await all(fromConversations(path, { onBadRow: 'skip', onEvent: (event) => events.push(event) }));
    expect(events.filter(({ type }) => type === 'field-unused')).toStrictEqual([
      { type: 'field-unused', file: path, field: 'messages[].annotations', rows: 1 },
      { type: 'field-unused', file: path, field: 'id', rows: 2 },
      { type: 'field-unused', file: path, field: 'score', rows: 1 },
    ]);
  });
});

describe('rows with nothing to train', () => {
  const answered = { messages: [user, { role: 'assistant', content: 'ho' }] };

  it('are left out, counted and told', async () => {
    const path = file(answered, { messages: [user] }, answered);
    const events: SourceEvent[] = [];
    const own: unknown[] = [];
    const source = fromConversations(path, { onEvent: (event) => events.push(event) });
    expect(await all(source.pipe(toDatums(bytes, { onEvent: (event) => own.push(event) })))).toHaveLength(2);
    const told = { type: 'row-untrained', file: path, line: 2, reason: 'no token carries loss' };
    expect(events.filter(({ type }) => type === 'row-untrained')).toStrictEqual([told]);
    expect(own).toStrictEqual([told]);
    expect(events.at(-1)).toMatchObject({ rows: 3, untrainedRows: 1, done: true });
  });

  it('alone are an error, not a success', async () => {
    const rows = Array.from({ length: 200 }, () => ({ messages: [user] }));
    await expect(all(fromConversations(file(...rows)).pipe(toDatums(bytes)))).rejects.toThrow(
      'nothing to train: no token of the 200 conversations carries loss',
    );
    const cut = from([answered]).pipe(toDatums(bytes, { maxLength: 3 }));
    await expect(all(cut)).rejects.toMatchObject({ name: 'ValidationError' });
  });

  it('are told where they come from no file, too', async () => {
    const own: unknown[] = [];
    const rows = from([answered, [user]]).pipe(toDatums(bytes, { onEvent: (event) => own.push(event) }));
    expect(await all(rows)).toHaveLength(1);
    expect(own).toMatchObject([{ type: 'row-untrained', file: 'conversation', line: 2 }]);
  });

  it('are none where nothing came at all', async () => {
    expect(await all(fromConversations(file()).pipe(toDatums(bytes)))).toStrictEqual([]);
  });
});

describe('what the renderer cannot write', () => {
  const good = { messages: [user, { role: 'assistant', content: 'ho' }] };
  const typo = { messages: [{ role: 'usr', content: 'hi' }, good.messages[1]] };

  it('has the file and the line, after a shuffle as well', async () => {
    const path = file(good, good, typo);
    for (const rows of [fromConversations(path), fromConversations(path).pipe(shuffle({ window: 8, seed: 1 }))]) {
      const error: unknown = await all(rows.pipe(toDatums(bytes))).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(BadRowError);
      expect(error).toMatchObject({ file: path, line: 3, reason: "tinker_rx_bytes has no role 'usr'" });
      expect((error as Error).cause).toBeInstanceOf(RendererError);
    }
  });

  it('is skipped, counted and told where bad rows are', async () => {
    const path = file(good, typo, 'no JSON', good);
    const events: SourceEvent[] = [];
    const source = fromConversations(path, { onBadRow: 'skip', onEvent: (event) => events.push(event) });
    expect(await all(source.pipe(toDatums(bytes)))).toHaveLength(2);
    expect(events.flatMap((event) => (event.type === 'row-skipped' ? [event.line] : []))).toStrictEqual([2, 3]);
    expect(events.at(-1)).toMatchObject({ rows: 2, badRows: 2, done: true });
  });

  it('can be skipped where it comes from no file, or where the source says nothing', async () => {
    const events: unknown[] = [];
    const options = { onFailure: 'skip', onEvent: (event: unknown) => events.push(event) } as const;
    expect(await all(from([typo, good, 7]).pipe(toDatums(bytes, options)))).toHaveLength(1);
    expect(await all(fromConversations(file(typo, good)).pipe(toDatums(bytes, options)))).toHaveLength(1);
    expect(events).toMatchObject([{ line: 1 }, { line: 3 }, { line: 1 }]);
  });

  it('of a pair has the file and the line, and is skipped, too', async () => {
    const answers = { chosen: 'yes', rejected: 'no' };
    const path = file({ prompt: 'hi', ...answers }, { prompt: [{ role: 'usr', content: 'hi' }], ...answers });
    await expect(all(fromPreferences(path).pipe(toPairs(bytes)))).rejects.toMatchObject({
      code: 'bad_row',
      file: path,
      line: 2,
    });
    expect(await all(fromPreferences(path, { onBadRow: 'skip' }).pipe(toPairs(bytes)))).toHaveLength(1);
  });
});
