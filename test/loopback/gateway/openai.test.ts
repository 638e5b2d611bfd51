import OpenAI6 from 'openai';
import OpenAI7 from 'openai-7';
import { zodResponseFormat } from 'openai/helpers/zod';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { thought } from '../support/thinkingRenderer.js';
import { closeAfterEach, model, serving, user } from './serving.js';

closeAfterEach();

const tools = [
  {
    type: 'function' as const,
    function: { name: 'add', description: 'Adds.', parameters: { type: 'object' }, strict: true },
  },
];
const called = thought('I need the sum.', '', ['add', { a: 1, b: 2 }]);

describe.each([
  ['6', OpenAI6],
  ['7', OpenAI7 as unknown as typeof OpenAI6],
])('openai %s', (_version, OpenAI) => {
  const client = ({ baseURL, apiKey }: { baseURL: string; apiKey: string }) =>
    new OpenAI({ baseURL, apiKey, maxRetries: 0 });

  it.each([false, true])('chats with tools over three turns, streamed: %s', async (stream) => {
    const gateway = await serving([called, thought('Easy.', 'Three.'), thought('Again.', 'Still three.')]);
    const openai = client(gateway);
    const messages: OpenAI6.ChatCompletionMessageParam[] = user('1+2?');
    const ask = async () => {
      const body = { model, messages, tools };
      const { choices } = stream
        ? await openai.chat.completions.stream(body).finalChatCompletion()
        : await openai.chat.completions.create(body);
      messages.push(choices[0]!.message);
      return choices[0]!;
    };
    const first = await ask();
    expect(first.finish_reason).toBe('tool_calls');
    expect(first.message).toMatchObject({ reasoning_content: 'I need the sum.' });
    const [call] = first.message.tool_calls!;
    messages.push({ role: 'tool', tool_call_id: call!.id, content: [{ type: 'text', text: '3' }] });
    expect((await ask()).message.content).toBe('Three.');
    messages.push(...user('Sure?'));
    expect((await ask()).message).toMatchObject({ content: 'Still three.', reasoning_content: 'Again.' });
    expect(gateway.prompts()[1]).toContain('<think>\nI need the sum.\n</think>');
    expect(gateway.prompts()[2]).toContain('<tool_response>\n3\n</tool_response>');
  });

  it('runs its tool runner', async () => {
    const gateway = await serving([called, thought('Easy.', 'Three.')]);
    const runner = client(gateway).chat.completions.runTools({
      model,
      messages: user('1+2?'),
      tools: [
        {
          type: 'function',
          function: {
            name: 'add',
            description: 'Adds.',
            parameters: { type: 'object' },
            parse: (text: string) => JSON.parse(text) as { a: number; b: number },
            function: ({ a, b }: { a: number; b: number }) => String(a + b),
          },
        },
      ],
    });
    expect(await runner.finalContent()).toBe('Three.');
  });

  it.each([false, true])('keeps a conversation through responses, streamed: %s', async (stream) => {
    const gateway = await serving([called, thought('Easy.', 'Three.'), thought('Again.', 'Still three.')]);
    const openai = client(gateway);
    const declared = [{ type: 'function' as const, name: 'add', parameters: { type: 'object' }, strict: true }];
    const input: OpenAI6.Responses.ResponseInputItem[] = user('1+2?');
    const ask = async () => {
      const body = { model, input, tools: declared, include: ['reasoning.encrypted_content' as const] };
      const response = stream
        ? await openai.responses.stream(body).finalResponse()
        : await openai.responses.create({ ...body, store: false });
      input.push(...(response.output as OpenAI6.Responses.ResponseInputItem[]));
      return response;
    };
    const first = await ask();
    expect(first.output.map(({ type }) => type)).toEqual(['reasoning', 'function_call']);
    const { call_id } = first.output[1] as OpenAI6.Responses.ResponseFunctionToolCall;
    input.push({ type: 'function_call_output', call_id, output: [{ type: 'input_text', text: '3' }] });
    expect((await ask()).output_text).toBe('Three.');
    input.push(...user('Sure?'));
    expect((await ask()).output_text).toBe('Still three.');
    expect(gateway.prompts()[1]).toContain('<think>\nI need the sum.\n</think>');
  });

  it('streams reasoning as it comes', async () => {
    const gateway = await serving([thought('One. Two.', 'Three.')], { pieceTokens: 6 });
    const deltas: string[] = [];
    const stream = await client(gateway).responses.create({ model, input: 'x', stream: true });
    for await (const event of stream) if (event.type === 'response.reasoning_text.delta') deltas.push(event.delta);
    expect(deltas.join('')).toBe('One. Two.');
    expect(deltas.length).toBeGreaterThan(1);
  });

  it('parses an answer by a Zod schema', async () => {
    const gateway = await serving([thought('Hm.', '```json\n{"city": "Paris"}\n```')]);
    const response_format = zodResponseFormat(z.object({ city: z.string() }), 'place');
    const { choices } = await client(gateway).chat.completions.parse({
      model,
      messages: user('Capital?'),
      response_format,
    });
    expect(choices[0]!.message.parsed).toEqual({ city: 'Paris' });
  });

  it('finds a model by its name', async () => {
    const gateway = await serving(['']);
    expect((await client(gateway).models.retrieve(model)).id).toBe(model);
    await expect(client(gateway).models.retrieve('other')).rejects.toMatchObject({ status: 404 });
  });
});
