import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateObject, generateText, isStepCount, streamText, tool, type LanguageModel, type ModelMessage } from 'ai';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import type { ServedGateway } from '../../../src/serve/index.js';
import { thought } from '../support/thinkingRenderer.js';
import { closeAfterEach, model, serving, user } from './serving.js';

closeAfterEach();

const providers: readonly (readonly [string, (gateway: ServedGateway) => LanguageModel])[] = [
  ['@ai-sdk/openai, responses', ({ baseURL, apiKey }) => createOpenAI({ baseURL, apiKey }).responses(model)],
  ['@ai-sdk/openai, chat', ({ baseURL, apiKey }) => createOpenAI({ baseURL, apiKey }).chat(model)],
  [
    '@ai-sdk/openai-compatible',
    ({ baseURL, apiKey }) => createOpenAICompatible({ name: 'rx', baseURL, apiKey }).chatModel(model),
  ],
  ['@ai-sdk/anthropic', ({ baseURL, apiKey }) => createAnthropic({ baseURL, apiKey })(model)],
];

const add = tool({
  description: 'Adds.',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
});
const called = thought('I need the sum.', '', ['add', { a: 1, b: 2 }]);

describe.each(providers)('the AI SDK with %s', (_name, modelOf) => {
  it.each([false, true])('uses tools and keeps a conversation, streamed: %s', async (stream) => {
    const gateway = await serving([called, thought('Easy.', 'Three.'), called, thought('Again.', 'Still three.')]);
    const messages: ModelMessage[] = user('1+2?');
    const ask = async () => {
      const options = { model: modelOf(gateway), messages, tools: { add }, stopWhen: isStepCount(4), maxRetries: 0 };
      const result = stream ? streamText({ ...options, onError: () => undefined }) : await generateText(options);
      const text = await result.text;
      messages.push(...(await result.response).messages);
      return text;
    };
    expect(await ask()).toBe('Three.');
    messages.push(...user('Sure?'));
    expect(await ask()).toBe('Still three.');
    expect(gateway.prompts()).toHaveLength(4);
    expect(gateway.prompts()[3]).toContain('Three.');
    expect(gateway.prompts()[3]).toContain('<tool_response>\n3\n</tool_response>');
  });

  it('makes an object by a Zod schema', async () => {
    const gateway = await serving([thought('Hm.', '{"city": "Paris"}')]);
    const { object } = await generateObject({
      model: modelOf(gateway),
      prompt: 'Capital?',
      schema: z.object({ city: z.string() }),
      maxRetries: 0,
    });
    expect(object).toEqual({ city: 'Paris' });
  });
});

it('shows the reasoning of a response that asks for a summary', async () => {
  const gateway = await serving([thought('Easy.', 'Three.')]);
  const { reasoningText } = await generateText({
    model: providers[0]![1](gateway),
    prompt: '1+2?',
    providerOptions: { openai: { reasoningSummary: 'auto', forceReasoning: true } },
  });
  expect(reasoningText).toBe('Easy.');
});
