import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { thought } from '../support/thinkingRenderer.js';
import { closeAfterEach, model, serving, user } from './serving.js';

closeAfterEach();

const client = ({ url, apiKey }: { url: string; apiKey: string }) =>
  new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
const called = thought('I need the sum.', '', ['add', { a: 1, b: 2 }]);
const input_schema = { type: 'object' as const };

describe('the Anthropic SDK', () => {
  it.each([false, true])('runs its tool runner, streamed: %s', async (stream) => {
    const gateway = await serving([called, thought('Easy.', 'Three.')]);
    const add = betaZodTool({
      name: 'add',
      description: 'Adds.',
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      run: ({ a, b }) => String(a + b),
    });
    const runner = client(gateway).beta.messages.toolRunner({
      model,
      max_tokens: 200,
      messages: user('1+2?'),
      tools: [add],
      stream,
    });
    const last = await runner.runUntilDone();
    expect(last.content).toMatchObject([
      { type: 'thinking', thinking: 'Easy.' },
      { type: 'text', text: 'Three.' },
    ]);
    expect(gateway.prompts().at(-1)).toContain('<tool_response>\n3\n</tool_response>');
    expect(gateway.prompts().at(-1)).toContain('<think>\nI need the sum.\n</think>');
  });

  it('keeps a conversation with thinking and tools over three turns', async () => {
    const gateway = await serving([called, thought('Easy.', 'Three.'), thought('Again.', 'Still three.')]);
    const messages: Anthropic.MessageParam[] = user('1+2?');
    const ask = async () => {
      const { content } = await client(gateway).messages.create({
        model,
        max_tokens: 200,
        system: [{ type: 'text', text: 'Add.', cache_control: { type: 'ephemeral' } }],
        tools: [{ name: 'add', input_schema, cache_control: { type: 'ephemeral' } }],
        messages,
      });
      messages.push({ role: 'assistant', content });
      return content;
    };
    const [, use] = await ask();
    expect(use).toMatchObject({ type: 'tool_use', name: 'add', input: { a: 1, b: 2 } });
    const { id: tool_use_id } = use as Anthropic.ToolUseBlock;
    messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id, content: 'no', is_error: true }] });
    expect((await ask()).at(-1)).toMatchObject({ text: 'Three.' });
    messages.push(...user('Sure?'));
    expect((await ask()).at(-1)).toMatchObject({ text: 'Still three.' });
    expect(gateway.prompts()[1]).toContain('<tool_response>\nError: no\n</tool_response>');
  });

  it('parses an answer by a schema', async () => {
    const gateway = await serving([thought('Hm.', '{"town": 1}'), thought('Hm.', '{"city": "Paris"}')]);
    const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const asked = { model, max_tokens: 99, messages: user('Capital?') };
    const output_config = { format: { type: 'json_schema' as const, schema } };
    const whole = await client(gateway).messages.create({ ...asked, output_config });
    expect(whole.content.at(-1)).toMatchObject({ text: '{"city": "Paris"}' });
    const streamed = await client(gateway)
      .messages.stream({ ...asked, output_config })
      .finalMessage();
    expect(streamed.content.at(-1)).toMatchObject({ text: '{"city": "Paris"}' });
  });

  it('counts tokens', async () => {
    const gateway = await serving(['x']);
    const asked = { model, messages: user('Capital?'), tools: [{ name: 'add', input_schema }] };
    const { input_tokens } = await client(gateway).messages.countTokens(asked);
    expect(gateway.asked).toHaveLength(0);
    await client(gateway).messages.create({ ...asked, max_tokens: 9 });
    expect(input_tokens).toBe(gateway.asked[0]!.prompt.length);
  });

  it('continues a turn that it has begun', async () => {
    const gateway = await serving([' is Paris.']);
    const reply = await client(gateway).messages.create({
      model,
      max_tokens: 99,
      messages: [...user('Capital?'), { role: 'assistant', content: 'The capital' }],
    });
    expect(reply.content).toEqual([{ type: 'text', text: ' is Paris.' }]);
    expect(gateway.prompts()[0]).toMatch(/<\|im_start\|>assistant\n.*The capital$/s);
  });

  it('reads a result that is an object', async () => {
    const gateway = await serving([thought('', 'Three.')]);
    const use = { type: 'tool_use', id: 'c1', name: 'add', input: {} };
    const result = { type: 'tool_result', tool_use_id: 'c1', content: { sum: 3 } };
    const messages = [...user('1+2?'), { role: 'assistant', content: [use] }, { role: 'user', content: [result] }];
    expect(await gateway.post('/v1/messages', { max_tokens: 9, messages })).toMatchObject({ status: 200 });
    expect(gateway.prompts()[0]).toContain('{"sum":3}');
  });
});
