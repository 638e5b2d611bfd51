import { describe, expect, it } from 'vitest';
import { continuePrompt, getRenderer, type Message, type Renderer } from '../../../src/chat/renderers/index.js';
import { ByteTokenizer } from '../../../src/chat/tokenizer/index.js';
import { recordedFamilies } from '../../parity/renderersRecorded.js';

const families = new Map(recordedFamilies().map(({ family, tokenizer }) => [family.family, tokenizer]));
const bytes = getRenderer('tinker_rx_bytes', new ByteTokenizer());
const user = (content: string): Message => ({ role: 'user', content });

/** Text as single characters: never what the tokenizer would make of it. */
const letterByLetter = (renderer: Renderer, text: string): number[] =>
  [...text].flatMap((letter) => [...renderer.tokenizer.encode(letter)]);

function exchangeOf(renderer: Renderer, messages: readonly Message[], sampled: readonly number[]) {
  const tokens = Int32Array.from(sampled);
  return {
    messages,
    prompt: renderer.buildGenerationPrompt(messages),
    tokens,
    reply: renderer.parse(tokens).message,
  };
}

describe('continuePrompt', () => {
  it('keeps the ids that were sampled, where encoding the text again would give others', () => {
    const renderer = getRenderer('qwen3_instruct', families.get('qwen3')!);
    const [stop] = renderer.getStopSequences() as number[];
    const sampled = [...letterByLetter(renderer, 'hello world'), stop!];
    expect(sampled).not.toEqual([...renderer.tokenizer.encode('hello world'), stop]);
    const before = exchangeOf(renderer, [user('Hi')], sampled);
    const { prompt, broken } = continuePrompt(renderer, before, [user('Hi'), before.reply, user('More')]);
    expect(broken).toBeUndefined();
    const ids = [...prompt.toInts()];
    expect(ids.slice(0, before.prompt.length + sampled.length)).toEqual([...before.prompt.toInts(), ...sampled]);
    const plain = renderer.buildGenerationPrompt([user('Hi'), before.reply, user('More')]);
    expect(renderer.tokenizer.decode(ids)).toBe(renderer.tokenizer.decode(plain.toInts()));
  });

  it('ends a turn that was cut off, as the template does', () => {
    const before = exchangeOf(bytes, [user('a')], letterByLetter(bytes, 'cut of'));
    const { prompt } = continuePrompt(bytes, before, [user('a'), before.reply, user('b')]);
    expect(bytes.tokenizer.decode(prompt.toInts())).toBe(
      '<|user|>a<|end|><|assistant|>cut of<|end|><|user|>b<|end|><|assistant|>',
    );
  });

  it('takes calls with other ids and spacing for the same', () => {
    const sampled = bytes.tokenizer.encodeWithSpecials('<|tool|>{"name":"add","arguments":{"a":1}}<|end|>');
    const before = exchangeOf(bytes, [user('a')], [...sampled]);
    const sent: Message = {
      role: 'assistant',
      content: '',
      toolCalls: [{ id: 'x', name: 'add', arguments: '{"a": 1}' }],
    };
    const { prompt, broken } = continuePrompt(bytes, before, [user('a'), sent, { role: 'tool', content: '2' }]);
    expect(broken).toBeUndefined();
    expect(bytes.tokenizer.decode(prompt.toInts())).toContain(
      '{"name":"add","arguments":{"a":1}}<|end|><|tool|>2<|end|>',
    );
  });

  it('says why where it cannot', () => {
    const before = exchangeOf(bytes, [user('a')], [...bytes.tokenizer.encode('b'), 256]);
    const edited = [user('A'), before.reply, user('c')];
    expect(continuePrompt(bytes, before, edited)).toEqual({
      prompt: bytes.buildGenerationPrompt(edited),
      broken: 'the history was changed',
    });
    const thinking = getRenderer('qwen3', families.get('qwen3')!);
    const [stop] = thinking.getStopSequences() as number[];
    const { tokenizer } = thinking;
    const said = [
      tokenizer.tokenId('<think>'),
      ...tokenizer.encode('hm'),
      tokenizer.tokenId('</think>'),
      ...tokenizer.encode('b'),
    ];
    const thought = exchangeOf(thinking, [user('a')], [...said, stop!]);
    expect(continuePrompt(thinking, thought, [user('a'), thought.reply, user('c')]).broken).toBe(
      'qwen3 writes earlier turns differently than it sampled them',
    );
  });
});
