import { from, lastValueFrom, map, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Renderer } from '../../src/chat/renderers/core/Renderer.js';
import { type SupervisedRenderer, toDatums } from '../../src/operators/data/toDatums.js';
import { ModelInput } from '../../src/wire/modelInput.js';
import { TensorData } from '../../src/wire/tensor.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

interface Message {
  readonly content: string;
}

/** Renders each message as an example of its own: one token a character, the last one trained on. */
const renderer: SupervisedRenderer<Message, 'last' | 'all'> = {
  buildSupervisedExamples: (messages, { trainOn = 'last' } = {}) =>
    messages.map(({ content }) => {
      if (content === '') throw new Error('nothing to say');
      const tokens = Array.from(content, (char) => char.charCodeAt(0));
      const weights = tokens.map((_, place) => (trainOn === 'all' || place === tokens.length - 1 ? 1 : 0));
      return { modelInput: ModelInput.fromInts(tokens), weights };
    }),
};
const talk = (...contents: string[]) => ({ messages: contents.map((content) => ({ role: 'user', content })) });
const rendered = (conversation: ReturnType<typeof talk>, options: Parameters<typeof toDatums>[1] = {}) =>
  lastValueFrom(from([conversation]).pipe(toDatums(renderer, options as object), toArray()));

describe('toDatums', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map(() => talk('abc')),
        toDatums(renderer),
        map((datum) => datum.modelInput.length),
      ),
    readsForThree: 3,
    throwing: () => (source) =>
      source.pipe(
        map(() => talk('abc')),
        toDatums({ buildSupervisedExamples: throwing }),
      ),
  });

  it('takes the renderers of the library', () => {
    const check = (real: Renderer) => toDatums(real, { trainOn: 'all_messages' });
    expect(check).toBeTypeOf('function');
  });

  it(
    'gives each conversation its datums, in order and at once',
    marbles((m) => {
      const source = m.cold('  -a---b---|', { a: talk('ab'), b: talk('abc', 'abcd') });
      const subs = '           ^--------!';
      const expected = '       -1---(23)|';
      const lengths = source.pipe(
        toDatums(renderer),
        map((datum) => String(datum.modelInput.length)),
      );
      m.expect(lengths).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it('shifts by one, reduces weights, cuts to length, and says what to train on', async () => {
    const [datum] = await rendered(talk('abcd'), { trainOn: 'all', reduction: 'sum', maxLength: 3 });
    expect(datum!.modelInput.toInts()).toStrictEqual(Int32Array.of(97, 98));
    expect(datum!.lossFnInputs).toStrictEqual({
      target_tokens: TensorData.from([98, 99], 'int64'),
      weights: TensorData.from([1, 1], 'float32'),
    });
    const [mean] = await rendered(talk('abc'), { trainOn: 'all' });
    expect(mean!.lossFnInputs['weights']).toStrictEqual(TensorData.from([0.5, 0.5], 'float32'));
  });

  it('takes bare arrays of messages', async () => {
    const datums = await lastValueFrom(from([[{ role: 'user', content: 'ab' }]]).pipe(toDatums(renderer), toArray()));
    expect(datums).toHaveLength(1);
  });

  it('takes rows in the usual forms, and messages of the library untouched', async () => {
    const seen: unknown[] = [];
    const watching: SupervisedRenderer<unknown, never> = {
      buildSupervisedExamples: (messages) => {
        seen.push(messages);
        return [];
      },
    };
    const rich = [{ role: 'assistant', content: [{ type: 'thinking', thinking: 'hm' }], toolCalls: [] }];
    const rows = [
      { messages: rich },
      { conversations: [{ from: 'human', value: 'hi' }] },
      { instruction: 'do', output: 'done' },
      { messages: [{ role: 'tool', content: 'x', tool_call_id: '1' }] },
    ];
    await lastValueFrom(from(rows).pipe(toDatums(watching), toArray()));
    expect(seen).toStrictEqual([
      rich,
      [{ role: 'user', content: 'hi' }],
      [
        { role: 'user', content: 'do' },
        { role: 'assistant', content: 'done' },
      ],
      [{ role: 'tool', content: 'x', toolCallId: '1' }],
    ]);
    expect(seen[0]).toBe(rich);
  });

  it('says which row has no known form', async () => {
    const rows = from([talk('ab'), { text: 'x' }]).pipe(toDatums(renderer));
    await expect(lastValueFrom(rows)).rejects.toMatchObject({
      name: 'ValidationError',
      message: expect.stringMatching(/^conversation 1: expected one of: messages/) as string,
    });
  });

  it(
    'fails with what the renderer throws, and for an example of one token',
    marbles((m) => {
      const source = m.cold('  -a-|', { a: talk('') });
      const short = m.cold('   -a-|', { a: talk('a') });
      m.expect(source.pipe(toDatums(renderer))).toBeObservable('-#', undefined, new Error('nothing to say'));
      const failed = short.pipe(toDatums(renderer), toArray());
      failed.subscribe({ error: (error: Error) => (name = error.name) });
      let name = '';
      m.flush();
      expect(name).toBe('ValidationError');
    }),
  );
});
