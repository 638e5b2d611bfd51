import type { LanguageModelV3, LanguageModelV4 } from '@ai-sdk/provider';
import { APICallError, generateObject, generateText, isStepCount, jsonSchema, streamText, tool } from 'ai';
import * as ai6 from 'ai-6';
import { describe, expect, it } from 'vitest';
import { tinker } from '../../../src/ai-sdk/index.js';
import { NotFoundError } from '../../../src/index.js';
import { call, scripted, tokenizer } from '../../loopback/support/scriptedSampler.js';

const add = tool({
  description: 'Adds.',
  inputSchema: jsonSchema<{ a: number; b: number }>({
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  }),
  execute: ({ a, b }) => a + b,
});

describe('a language model of the AI SDK', () => {
  it('is one by type, for both specifications', () => {
    const { sampler } = scripted(['']);
    const v4: LanguageModelV4 = tinker(sampler);
    const v3: LanguageModelV3 = tinker(sampler, { specification: 'v3' });
    expect([v4.specificationVersion, v3.specificationVersion]).toEqual(['v4', 'v3']);
  });

  it('generates text, with exact ids, logprobs and usage', async () => {
    const { sampler, asked, prompts } = scripted(['Paris'], { cached: 3 });
    const result = await generateText({
      model: tinker(sampler, { samplingParams: { maxTokens: 9 } }),
      system: 'Be brief.',
      prompt: 'Capital of France?',
      temperature: 0,
      seed: 4,
    });
    expect(result.text).toBe('Paris');
    expect(result.finishReason).toBe('stop');
    expect(prompts()).toEqual(['<|system|>Be brief.<|end|><|user|>Capital of France?<|end|><|assistant|>']);
    expect(asked[0]?.samplingParams).toEqual({ maxTokens: 9, temperature: 0, seed: 4, stop: [256] });
    const { tokens, logprobs, promptTokens } = result.providerMetadata!['tinker'] as Record<string, number[]>;
    expect(tokenizer.decode(tokens!)).toBe('Paris<|end|>');
    expect(logprobs).toEqual(tokens!.map(() => -0.5));
    expect(promptTokens!.length).toBe(result.usage.inputTokens);
    expect(result.usage.outputTokens).toBe(6);
    expect(result.usage.inputTokenDetails.cacheReadTokens).toBe(3);
  });

  it('calls tools in several steps, and the results are part of the next prompt', async () => {
    const { sampler, prompts } = scripted([call('add', { a: 2, b: 3 }), 'It is 5.']);
    const result = await generateText({
      model: tinker(sampler),
      prompt: '2 + 3?',
      tools: { add },
      stopWhen: isStepCount(3),
    });
    expect(result.text).toBe('It is 5.');
    expect(result.steps.map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop']);
    expect(prompts()[0]).toContain('"name": "add"');
    expect(prompts()[1]).toMatch(
      /<\|tool\|>\{"name": "add", "arguments": \{"a": 2, "b": 3\}\}<\|end\|><\|tool\|>5<\|end\|><\|assistant\|>$/,
    );
  });

  it.each([
    ['whole', undefined, 1],
    ['in pieces', 2, 4],
  ])('streams %s', async (_, pieceTokens, requests) => {
    const { sampler, asked } = scripted(['Hello!']);
    const model = tinker(sampler, pieceTokens === undefined ? {} : { pieceTokens });
    const { textStream, usage } = streamText({ model, prompt: 'Hi' });
    const parts: string[] = [];
    for await (const part of textStream) parts.push(part);
    expect(parts.join('')).toBe('Hello!');
    expect((await usage).outputTokens).toBe(7);
    expect(asked.length).toBe(requests);
    if (pieceTokens !== undefined) expect(parts.length).toBeGreaterThan(2);
  });

  it('streams tool calls', async () => {
    const { sampler } = scripted([`Wait. ${call('add', { a: 1, b: 1 })}`, 'Two.']);
    const { stream } = streamText({ model: tinker(sampler), prompt: '1+1', tools: { add }, stopWhen: isStepCount(2) });
    const types: string[] = [];
    for await (const part of stream) types.push(part.type);
    expect(types).toEqual(
      expect.arrayContaining(['text-delta', 'tool-input-end', 'tool-call', 'tool-result', 'finish']),
    );
  });

  it('ends at a stop sequence, and does not sample a piece after it', async () => {
    const { sampler, asked } = scripted(['one. two. three. four']);
    const { textStream, finishReason } = streamText({
      model: tinker(sampler, { pieceTokens: 4 }),
      prompt: 'Count',
      stopSequences: ['. t'],
    });
    let text = '';
    for await (const part of textStream) text += part;
    expect(text).toBe('one');
    expect(await finishReason).toBe('stop');
    expect(asked.length).toBe(2);
  });

  it('generates an object, with the schema in the prompt and a word about it', async () => {
    const { sampler, prompts } = scripted(['{"city": "Paris"}']);
    const schema = jsonSchema<{ city: string }>({ type: 'object', properties: { city: { type: 'string' } } });
    const { object, warnings } = await generateObject({ model: tinker(sampler), schema, prompt: 'Capital?' });
    expect(object).toEqual({ city: 'Paris' });
    expect(prompts()[0]).toMatch(/^<\|system\|>Answer with JSON only, matching this JSON schema:\n\{.*"city"/);
    expect(warnings).toMatchObject([{ type: 'compatibility', feature: 'responseFormat' }]);
  });

  it('what the service cannot do is a warning, not a silence', async () => {
    const { sampler } = scripted([call('add', { a: 1, b: 1 })]);
    const { warnings } = await generateText({
      model: tinker(sampler),
      prompt: 'x',
      presencePenalty: 1,
      tools: { add },
      toolChoice: 'required',
      headers: { 'x-a': 'b' },
    });
    const features = warnings?.map((warning) => ('feature' in warning ? warning.feature : warning.type));
    expect(features).toEqual(['presencePenalty', 'toolChoice', 'headers']);
  });

  it('a failure is an error of the AI SDK, tried once since the client has retried', async () => {
    const refusal = new NotFoundError('no such sampler', { status: 404, headers: { a: 'b' }, body: { detail: 'x' } });
    const { sampler, asked } = scripted([refusal]);
    const error: unknown = await generateText({ model: tinker(sampler), prompt: 'x' }).catch(
      (thrown: unknown) => thrown,
    );
    expect(APICallError.isInstance(error) && [error.statusCode, error.message, error.cause]).toEqual([
      404,
      'no such sampler',
      refusal,
    ]);
    expect(asked.length).toBe(1);
  });

  it('a file the model cannot read is unsupported, by name', async () => {
    const { sampler } = scripted(['x']);
    const file = { type: 'file' as const, mediaType: 'application/pdf', data: new Uint8Array([1]) };
    const error = await generateText({
      model: tinker(sampler),
      messages: [{ role: 'user', content: [file] }],
    }).catch((thrown: unknown) => thrown);
    expect(String(error)).toMatch('a file of type application/pdf; PNG and JPEG images are known');
  });

  it.each(['generate', 'stream'])('abortSignal cancels the sample on the server: %s', async (way) => {
    const { sampler, cancelled, asked } = scripted(['late'], { delayMs: 60_000 });
    const controller = new AbortController();
    const options = { model: tinker(sampler), prompt: 'x', abortSignal: controller.signal };
    const done =
      way === 'generate'
        ? generateText(options).catch((error: unknown) => error)
        : streamText({ ...options, onError: () => undefined }).text.then(undefined, (error: unknown) => error);
    await expect.poll(() => asked.length).toBe(1);
    controller.abort();
    expect(await done).toBeInstanceOf(Error);
    expect(cancelled()).toBe(1);
  });

  it('works with the AI SDK 6', async () => {
    const { sampler } = scripted([call('add', { a: 2, b: 2 }), 'Four.']);
    const model = tinker(sampler, { specification: 'v3' });
    const sum = ai6.tool({
      inputSchema: ai6.jsonSchema<{ a: number; b: number }>({ type: 'object' }),
      execute: ({ a, b }) => a + b,
    });
    const result = await ai6.generateText({
      model,
      prompt: '2+2',
      tools: { sum, add: sum },
      stopWhen: ai6.stepCountIs(3),
    });
    expect(result.text).toBe('Four.');
    const { textStream } = ai6.streamText({
      model: tinker(scripted(['Hi']).sampler, { specification: 'v3' }),
      prompt: 'x',
    });
    let text = '';
    for await (const part of textStream) text += part;
    expect(text).toBe('Hi');
  });

  it('refuses pieces of no tokens', () => {
    expect(() => tinker(scripted(['']).sampler, { pieceTokens: 0 })).toThrow('pieceTokens must be an integer ≥ 1');
  });
});
