import { describe, expect, it } from 'vitest';
import { messagesFrom, RendererError, toOpenAIMessage, type Message } from '../../../src/chat/renderers/index.js';

describe('messagesFrom', () => {
  it('reads what OpenAI-compatible services write', () => {
    const messages = messagesFrom([
      {
        role: 'system',
        content: 's',
        tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters: {} } }],
      },
      { role: 'user', content: [{ type: 'text', text: 'u' }] },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'hm',
        tool_calls: [
          { type: 'function', id: 'c1', function: { name: 'f', arguments: '{"a":1.0}' } },
          { type: 'function', function: { name: 'g', arguments: { b: '北' } } },
        ],
      },
      { role: 'tool', content: 'ok', tool_call_id: 'c1', name: 'f', trainable: false },
    ]);
    expect(messages).toEqual([
      { role: 'system', content: 's', tools: [{ name: 'f', description: 'd', parameters: {} }] },
      { role: 'user', content: [{ type: 'text', text: 'u' }] },
      {
        role: 'assistant',
        content: [{ type: 'thinking', thinking: 'hm' }],
        toolCalls: [
          { name: 'f', arguments: '{"a":1.0}', id: 'c1' },
          { name: 'g', arguments: '{"b": "北"}' },
        ],
      },
      { role: 'tool', content: 'ok', toolCallId: 'c1', name: 'f', trainable: false },
    ]);
  });

  it('splits reasoning that a reply carries inline, and nobody else’s', () => {
    const content = '<think>\nwhy\n</think>\n\nso';
    expect(messagesFrom([{ role: 'assistant', content }])[0]?.content).toEqual([
      { type: 'thinking', thinking: 'why' },
      { type: 'text', text: 'so' },
    ]);
    expect(messagesFrom([{ role: 'user', content }])[0]?.content).toBe(content);
    expect(messagesFrom([{ role: 'assistant', content: '<think>\n\n</think>\n\nso' }])[0]?.content).toBe('so');
    expect(messagesFrom([{ role: 'assistant', content: 'a </think> b' }])[0]?.content).toBe('a </think> b');
  });

  it('takes its own form, and images as data URIs', () => {
    const own: Message = { role: 'assistant', content: 'x', toolCalls: [{ name: 'f', arguments: '{}' }] };
    expect(messagesFrom([own])).toEqual([own]);
    const [{ content }] = messagesFrom([
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AQI=' } }] },
    ]) as [Message];
    expect(content).toEqual([{ type: 'image', format: 'png', data: Buffer.from([1, 2]) }]);
  });

  it.each([
    ['no', 'messages must be a list'],
    [[1], 'messages[0] must be an object'],
    [[{ content: '' }], 'messages[0].role must be a string'],
    [[{ role: 'user', content: 1 }], 'messages[0].content must be a string or a list of parts'],
    [[{ role: 'user', content: [{ type: 'smell' }] }], 'type smell'],
    [[{ role: 'user', content: [{ type: 'image_url', image_url: 'https://x/y.png' }] }], 'fetch remote images first'],
    [[{ role: 'assistant', content: '', tool_calls: [{}] }], 'no function name'],
  ])('says what is wrong with %j', (value, message) => {
    expect(() => messagesFrom(value)).toThrow(RendererError);
    expect(() => messagesFrom(value)).toThrow(message);
  });
});

describe('toOpenAIMessage', () => {
  it('is read back by messagesFrom', () => {
    const messages: Message[] = [
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm' },
          { type: 'text', text: 'x' },
        ],
        toolCalls: [{ name: 'f', arguments: '{}', id: 'c' }],
      },
      { role: 'tool', content: 'r', name: 'f', toolCallId: 'c' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'see' },
          { type: 'image', format: 'jpeg', data: Buffer.from([9]) },
        ],
      },
    ];
    expect(messagesFrom(messages.map(toOpenAIMessage))).toEqual(messages);
  });

  it('refuses what has no such form', () => {
    expect(() => toOpenAIMessage({ role: 'user', content: [{ type: 'audio', dmel: new Uint8Array() }] })).toThrow(
      RendererError,
    );
    expect(() => toOpenAIMessage({ role: 'user', content: [{ type: 'image', format: 'png', location: 'x' }] })).toThrow(
      RendererError,
    );
  });
});
