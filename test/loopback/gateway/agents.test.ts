import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from '@openai/agents';
import { ChatOpenAI } from '@langchain/openai';
import { HumanMessage, type BaseMessage } from '@langchain/core/messages';
import { tool as langchainTool } from '@langchain/core/tools';
import OpenAI from 'openai-7';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { thought } from '../support/thinkingRenderer.js';
import { closeAfterEach, model, serving, user } from './serving.js';

closeAfterEach();

const called = thought('I need the sum.', '', ['add', { a: 1, b: 2 }]);
const parameters = z.object({ a: z.number(), b: z.number() });

describe.each([true, false])('@openai/agents, through responses: %s', (useResponses) => {
  it.each([false, true])('runs a tool loop and goes on with its history, streamed: %s', async (stream) => {
    setTracingDisabled(true);
    const gateway = await serving([called, thought('Easy.', 'Three.'), thought('Again.', 'Still three.')]);
    const openAIClient = new OpenAI({ baseURL: gateway.baseURL, apiKey: gateway.apiKey, maxRetries: 0 });
    const runner = new Runner({
      modelProvider: new OpenAIProvider({ openAIClient: openAIClient as never, useResponses }),
      tracingDisabled: true,
    });
    const add = tool({ name: 'add', description: 'Adds.', parameters, execute: ({ a, b }) => String(a + b) });
    const agent = new Agent({ name: 'adder', instructions: 'Add.', model, tools: [add] });
    const run = async (input: Parameters<typeof runner.run>[1]) => {
      if (!stream) return runner.run(agent, input as never);
      const result = await runner.run(agent, input as never, { stream: true });
      await result.completed;
      return result;
    };
    const first = await run('1+2?');
    expect(first.finalOutput).toBe('Three.');
    const second = await run([...first.history, ...user('Sure?')] as never);
    expect(second.finalOutput).toBe('Still three.');
    expect(gateway.prompts()[2]).toContain('<tool_response>\n3\n</tool_response>');
  });
});

describe.each([false, true])('LangChain.js, through responses: %s', (useResponsesApi) => {
  const chat = ({ baseURL, apiKey }: { baseURL: string; apiKey: string }) =>
    new ChatOpenAI({ model, apiKey, useResponsesApi, configuration: { baseURL }, maxRetries: 0 });

  it('uses tools and keeps a conversation', async () => {
    const gateway = await serving([called, thought('Easy.', 'Three.'), thought('Again.', 'Still three.')]);
    const add = langchainTool(({ a, b }: z.infer<typeof parameters>) => String(a + b), {
      name: 'add',
      description: 'Adds.',
      schema: parameters,
    });
    const bound = chat(gateway).bindTools([add]);
    const messages: BaseMessage[] = [new HumanMessage('1+2?')];
    const first = await bound.invoke(messages);
    const [call] = first.tool_calls!;
    expect(call).toMatchObject({ name: 'add', args: { a: 1, b: 2 } });
    const result = await add.invoke({ ...call!, type: 'tool_call' });
    messages.push(first, result);
    const second = await bound.invoke(messages);
    expect(second.text).toBe('Three.');
    messages.push(second, new HumanMessage('Sure?'));
    let text = '';
    for await (const chunk of await bound.stream(messages)) text += chunk.text;
    expect(text).toBe('Still three.');
    expect(gateway.prompts()[2]).toContain('<tool_response>\n3\n</tool_response>');
  });

  it.each(['jsonSchema', 'functionCalling', 'jsonMode'] as const)('gives structured output by %s', async (method) => {
    const reply =
      method === 'functionCalling'
        ? thought('Hm.', '', ['place', { city: 'Paris' }])
        : thought('Hm.', '{"city": "Paris"}');
    const gateway = await serving([reply]);
    const structured = chat(gateway).withStructuredOutput(z.object({ city: z.string() }), { method, name: 'place' });
    expect(await structured.invoke('Capital? Answer in JSON.')).toEqual({ city: 'Paris' });
  });
});
