import Anthropic from '@anthropic-ai/sdk';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, isStepCount, jsonSchema, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { request } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { RateLimitError, AuthenticationError } from '../../src/index.js';
import { serveSampler, type ServedGateway, type ServeOptions } from '../../src/serve/index.js';
import { call, scripted } from './support/scriptedSampler.js';

let gateway: ServedGateway;
afterEach(() => gateway?.close());

async function serving(
  replies: Parameters<typeof scripted>[0],
  options: ServeOptions = {},
  delays: Parameters<typeof scripted>[1] = {},
) {
  const script = scripted(replies, delays);
  gateway = await serveSampler(script.sampler, options);
  const { baseURL, url, apiKey } = gateway;
  return {
    ...script,
    openai: new OpenAI({ baseURL, apiKey, maxRetries: 0 }),
    anthropic: new Anthropic({ baseURL: url, apiKey, maxRetries: 0 }),
  };
}
const model = 'test/model';
const user = (content: string) => [{ role: 'user' as const, content }];
const tools = [
  { type: 'function' as const, function: { name: 'add', description: 'Adds.', parameters: { type: 'object' } } },
];

describe('chat completions, by the openai package', () => {
  it('answers, with usage', async () => {
    const { openai, prompts, asked } = await serving(['Paris'], {}, { cached: 2 });
    const result = await openai.chat.completions.create({
      model,
      messages: [{ role: 'system', content: 'Be brief.' }, ...user('Capital?')],
      max_tokens: 20,
      temperature: 0.5,
      seed: 3,
    });
    expect(result.choices[0]).toMatchObject({
      finish_reason: 'stop',
      message: { role: 'assistant', content: 'Paris' },
    });
    expect(result.usage).toMatchObject({ completion_tokens: 6, prompt_tokens_details: { cached_tokens: 2 } });
    expect(prompts()).toEqual(['<|system|>Be brief.<|end|><|user|>Capital?<|end|><|assistant|>']);
    expect(asked[0]?.samplingParams).toMatchObject({ maxTokens: 20, temperature: 0.5, seed: 3 });
  });

  it.each([undefined, 2])('streams, in pieces of %s tokens', async (pieceTokens) => {
    const { openai } = await serving(['Hello there'], pieceTokens === undefined ? {} : { pieceTokens });
    const stream = await openai.chat.completions.create({
      model,
      messages: user('Hi'),
      stream: true,
      stream_options: { include_usage: true },
    });
    const parts: string[] = [];
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) parts.push(chunk.choices[0].delta.content);
      usage = chunk.usage;
    }
    expect(parts.join('')).toBe('Hello there');
    expect(usage?.completion_tokens).toBe(12);
    if (pieceTokens !== undefined) expect(parts.length).toBeGreaterThan(3);
  });

  it('gives n choices from one request, with logprobs', async () => {
    const { openai, asked } = await serving(['ok']);
    const { choices } = await openai.chat.completions.create({ model, messages: user('x'), n: 3, logprobs: true });
    expect(choices.map(({ message }) => message.content)).toEqual(['ok', 'ok', 'ok']);
    expect(choices[2]!.logprobs?.content?.map(({ token, logprob }) => [token, logprob])).toEqual([
      ['o', -0.5],
      ['k', -0.5],
    ]);
    expect(asked.map(({ numSamples }) => numSamples)).toEqual([3]);
  });

  it.each([false, true])('calls tools and reads their results, streamed: %s', async (stream) => {
    const { openai, prompts } = await serving([call('add', { a: 1 }), 'Done.']);
    const messages: OpenAI.ChatCompletionMessageParam[] = user('1+?');
    const first = stream
      ? (await openai.chat.completions.stream({ model, messages, tools }).finalChatCompletion()).choices[0]!
      : (await openai.chat.completions.create({ model, messages, tools })).choices[0]!;
    expect(first.finish_reason).toBe('tool_calls');
    const asked = first.message.tool_calls![0] as OpenAI.ChatCompletionMessageFunctionToolCall;
    expect(asked.function).toMatchObject({ name: 'add', arguments: '{"a": 1}' });
    messages.push(first.message, { role: 'tool', tool_call_id: asked.id, content: '2' });
    const second = await openai.chat.completions.create({ model, messages, tools });
    expect(second.choices[0]!.message.content).toBe('Done.');
    expect(prompts()[1]).toMatch(/<\|tool\|>\{"name": "add", "arguments": \{"a": 1\}\}<\|end\|><\|tool\|>2<\|end\|>/);
  });

  it('stops at the caller’s strings', async () => {
    const { openai } = await serving(['one two three']);
    const { choices } = await openai.chat.completions.create({ model, messages: user('x'), stop: [' t'] });
    expect(choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'one' } });
  });

  it('samples again until the answer fits its schema', async () => {
    const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'a', schema } };
    const { openai, asked, prompts } = await serving(['no JSON', '{"town": 1}', '{"city": "Paris"}']);
    const { choices } = await openai.chat.completions.create({ model, messages: user('x'), response_format });
    expect(choices[0]!.message.content).toBe('{"city": "Paris"}');
    expect(asked.length).toBe(3);
    expect(prompts()[0]).toContain('matching this JSON schema');
  });

  it('says what did not fit when no try did', async () => {
    const schema = { type: 'object', required: ['city'] };
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'a', schema } };
    const { openai } = await serving(['{}'], { jsonRetries: 1 });
    await expect(openai.chat.completions.create({ model, messages: user('x'), response_format })).rejects.toThrow(
      "422 the model's answer is not the JSON that was asked for: / must have required property 'city'",
    );
  });
});

describe('completions and responses, by the openai package', () => {
  it('continues a text as it is', async () => {
    const { openai, prompts } = await serving(['upon a time']);
    const { choices, usage } = await openai.completions.create({ model, prompt: 'Once ', max_tokens: 30, logprobs: 0 });
    expect(choices[0]).toMatchObject({ text: 'upon a time', finish_reason: 'stop' });
    expect(choices[0]!.logprobs?.tokens?.slice(0, 2)).toEqual(['u', 'p']);
    expect([usage?.prompt_tokens, prompts()]).toEqual([5, ['Once ']]);
  });

  it('answers through responses, with tools', async () => {
    const { openai, prompts } = await serving([call('add', { a: 1 }), 'Two.']);
    const declared = [{ type: 'function' as const, name: 'add', parameters: { type: 'object' }, strict: false }];
    const first = await openai.responses.create({ model, input: '1+1?', instructions: 'Add.', tools: declared });
    const asked = first.output[0] as OpenAI.Responses.ResponseFunctionToolCall;
    expect(asked).toMatchObject({ type: 'function_call', name: 'add', arguments: '{"a": 1}' });
    const second = await openai.responses.create({
      model,
      tools: declared,
      input: [...user('1+1?'), asked, { type: 'function_call_output', call_id: asked.call_id, output: '2' }],
    });
    expect(second.output_text).toBe('Two.');
    expect(prompts()[1]).toMatch(/<\|tool\|>2<\|end\|><\|assistant\|>$/);
  });

  it('streams responses', async () => {
    const { openai } = await serving(['Hello!'], { pieceTokens: 2 });
    const stream = openai.responses.stream({ model, input: 'Hi' });
    const deltas: string[] = [];
    stream.on('response.output_text.delta', ({ delta }) => deltas.push(delta));
    const final = await stream.finalResponse();
    expect([deltas.join(''), final.output_text, final.status]).toEqual(['Hello!', 'Hello!', 'completed']);
  });
});

describe('messages, by the Anthropic package', () => {
  it('answers', async () => {
    const { anthropic, prompts } = await serving(['Paris. Yes'], {}, { cached: 1 });
    const reply = await anthropic.messages.create({
      model,
      max_tokens: 20,
      system: 'Be brief.',
      messages: user('Capital?'),
      stop_sequences: ['. '],
    });
    expect(reply.content).toEqual([{ type: 'text', text: 'Paris' }]);
    expect(reply).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: '. ' });
    expect(reply.usage).toMatchObject({ cache_read_input_tokens: 1, output_tokens: 11 });
    expect(prompts()[0]).toBe('<|system|>Be brief.<|end|><|user|>Capital?<|end|><|assistant|>');
  });

  it('streams text and tool calls, and reads results', async () => {
    const { anthropic, prompts } = await serving([`Wait.${call('add', { a: 1 })}`, 'Two.'], { pieceTokens: 5 });
    const input_schema = { type: 'object' as const };
    const asking = { model, max_tokens: 99, tools: [{ name: 'add', input_schema }] };
    const first = await anthropic.messages.stream({ ...asking, messages: user('1+1') }).finalMessage();
    expect(first.content).toMatchObject([
      { type: 'text', text: 'Wait.' },
      { type: 'tool_use', name: 'add', input: { a: 1 } },
    ]);
    expect(first.stop_reason).toBe('tool_use');
    const result = { type: 'tool_result' as const, tool_use_id: (first.content[1] as { id: string }).id, content: '2' };
    const second = await anthropic.messages.create({
      ...asking,
      messages: [...user('1+1'), { role: 'assistant', content: first.content }, { role: 'user', content: [result] }],
    });
    expect(second.content).toEqual([{ type: 'text', text: 'Two.' }]);
    expect(prompts().at(-1)).toMatch(/<\|tool\|>2<\|end\|><\|assistant\|>$/);
  });
});

it('serves the AI SDK through its OpenAI-compatible provider', async () => {
  await serving([call('add', { a: 2, b: 3 }), 'Five.', 'Streamed.']);
  const provider = createOpenAICompatible({ name: 'rx', baseURL: gateway.baseURL, apiKey: gateway.apiKey });
  const add = tool({
    inputSchema: jsonSchema<{ a: number; b: number }>({ type: 'object' }),
    execute: ({ a, b }) => a + b,
  });
  const { text } = await generateText({
    model: provider.chatModel(model),
    prompt: '2+3',
    tools: { add },
    stopWhen: isStepCount(3),
  });
  expect(text).toBe('Five.');
  expect(await streamText({ model: provider.chatModel(model), prompt: 'x' }).text).toBe('Streamed.');
});

describe('what is refused', () => {
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    request(`${gateway.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.apiKey}`, ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });

  it.each([
    ['/v1/chat/completions', { messages: user('x'), presence_penalty: 1 }, 'presence_penalty'],
    ['/v1/chat/completions', { messages: user('x'), tool_choice: 'required' }, 'tool_choice'],
    ['/v1/chat/completions', { messages: user('x'), colour: 'red' }, 'colour'],
    ['/v1/chat/completions', { messages: user('x'), temperature: 'hot' }, 'temperature'],
    ['/v1/chat/completions', { messages: user('x'), max_tokens: 1e9 }, 'max_tokens'],
    ['/v1/completions', { prompt: 'x', suffix: 'y' }, 'suffix'],
    ['/v1/responses', { input: 'x', previous_response_id: 'r' }, 'previous_response_id'],
    ['/v1/messages', { messages: user('x'), max_tokens: 9, thinking: { type: 'enabled' } }, 'thinking'],
    ['/v1/messages', { messages: user('x') }, 'max_tokens'],
  ])('%s with a field it cannot honour is a 400 that names it in strict mode', async (path, body, field) => {
    const { asked } = await serving(['x'], { strict: true });
    const { statusCode, body: answer } = await post(path, body);
    expect([statusCode, JSON.stringify(await answer.json())]).toEqual([400, expect.stringContaining(field) as string]);
    expect(asked.length).toBe(0);
  });

  it('a caller without the key, from a foreign page, or under a foreign name', async () => {
    await serving(['x']);
    const ask = { messages: user('x') };
    const statusOf = async (headers: Record<string, string>) => {
      const { statusCode, body } = await post('/v1/chat/completions', ask, headers);
      await body.dump();
      return statusCode;
    };
    expect(await statusOf({ authorization: 'Bearer wrong' })).toBe(401);
    expect(await statusOf({ origin: 'https://evil.example' })).toBe(403);
    expect(await statusOf({ host: 'evil.example' })).toBe(403);
    expect(await statusOf({ origin: 'http://localhost:3000' })).toBe(200);
  });

  it('a body that is too large or no JSON, and a model that does not exist', async () => {
    const { openai } = await serving(['x'], { maxBodyBytes: 1000 });
    expect((await post('/v1/chat/completions', 'x'.repeat(2000))).statusCode).toBe(413);
    expect((await post('/v1/chat/completions', '{')).statusCode).toBe(400);
    await expect(openai.chat.completions.create({ model: 'gpt-4', messages: user('x') })).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
    });
    expect((await openai.models.list()).data.map(({ id }) => id)).toEqual([model]);
  });

  it('nothing of our own key is in what a caller is told', async () => {
    const secret = new AuthenticationError('bad key tml-secret', { status: 401, headers: {}, body: 'tml-secret' });
    const { openai } = await serving([secret]);
    const error = await openai.chat.completions
      .create({ model, messages: user('x') })
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ status: 502 });
    expect(JSON.stringify(error)).not.toContain('tml-secret');
  });

  it('more requests at once than allowed; a busy service is told as such', async () => {
    const { openai } = await serving(['x'], { maxRequests: 2 }, { delayMs: 200 });
    const asked = Array.from({ length: 3 }, () =>
      openai.chat.completions.create({ model, messages: user('x') }).then(
        () => 200,
        (error: { status: number }) => error.status,
      ),
    );
    expect((await Promise.all(asked)).sort()).toEqual([200, 200, 429]);
    await gateway.close();
    const busy = await serving([new RateLimitError('slow down', { status: 429, headers: {}, body: '' })]);
    await expect(busy.openai.chat.completions.create({ model, messages: user('x') })).rejects.toMatchObject({
      status: 429,
    });
  });
});

it('a caller that hangs up cancels its sample, and nobody else notices', async () => {
  const { openai, cancelled, asked } = await serving(['late'], {}, { delayMs: 300 });
  const controller = new AbortController();
  const gone = openai.chat.completions
    .create({ model, messages: user('a') }, { signal: controller.signal })
    .catch((error: unknown) => error);
  const stays = openai.chat.completions.create({ model, messages: user('b') });
  await expect.poll(() => asked.length).toBe(2);
  controller.abort();
  await gone;
  await expect.poll(cancelled).toBe(1);
  expect((await stays).choices[0]!.message.content).toBe('late');
});

it('of 50 callers at once one is slow and one hangs up, and nobody else notices', async () => {
  const { asked, cancelled } = await serving(['fine'], { pieceTokens: 1 }, { delayMs: 250 });
  const body = JSON.stringify({ messages: user('x'), stream: true });
  const headers = { authorization: `Bearer ${gateway.apiKey}` };
  const open = (signal?: AbortSignal) =>
    request(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers, body, ...(signal ? { signal } : {}) });
  const controller = new AbortController();
  const slow = open();
  const gone = open(controller.signal).then(({ body: stream }) => stream.text());
  const others = Array.from(
    { length: 48 },
    async () => (await (await open()).body.text()).match(/"content":"\w+"/g)?.length,
  );
  gone.catch(() => undefined);
  await expect.poll(() => asked.length, { interval: 10 }).toBeGreaterThan(49);
  controller.abort();
  await expect(gone).rejects.toThrow();
  // What a token at a time of `fine` comes to, for every one of them.
  expect(new Set(await Promise.all(others))).toEqual(new Set([4]));
  expect(cancelled()).toBe(1);
  // Read only now: it had to wait for nobody, and nobody for it.
  expect(await (await slow).body.text()).toContain('[DONE]');
});
