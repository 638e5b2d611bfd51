import { describe, expect, it } from 'vitest';
import { thought } from '../support/thinkingRenderer.js';
import { closeAfterEach, serving, user } from './serving.js';

closeAfterEach();

const CHAT = '/v1/chat/completions';
const tool = { type: 'function', function: { name: 'add', parameters: { type: 'object' }, strict: true } };
const other = { type: 'function', function: { name: 'other' } };

describe('a wish that cannot be granted', () => {
  it.each([
    [CHAT, { messages: user('x'), presence_penalty: 1 }, 'presence_penalty'],
    [CHAT, { messages: user('x'), tools: [tool], tool_choice: 'required' }, 'tool_choice'],
    [CHAT, { messages: user('x'), tools: [tool], parallel_tool_calls: false }, 'parallel_tool_calls'],
    [CHAT, { messages: user('x'), reasoning_effort: 'low' }, 'reasoning_effort'],
    [CHAT, { messages: user('x'), max_tokens: 1e9 }, 'max_tokens'],
    ['/v1/completions', { prompt: 'x', frequency_penalty: 0.5 }, 'frequency_penalty'],
    ['/v1/responses', { input: 'x', reasoning: { effort: 'high' } }, 'reasoning.effort'],
    ['/v1/responses', { input: 'x', truncation: 'auto' }, 'truncation'],
    ['/v1/messages', { messages: user('x'), max_tokens: 9, thinking: { type: 'adaptive' } }, 'thinking'],
    [
      '/v1/messages',
      { messages: user('x'), max_tokens: 9, tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
      'tool_choice.disable_parallel_tool_use',
    ],
  ])('%s answers, and a header names it; in strict mode it is a 400: %j', async (path, body, field) => {
    const gateway = await serving([thought('', 'fine')]);
    const lenient = await gateway.post(path, body);
    expect(lenient).toMatchObject({ status: 200 });
    expect(lenient.headers.get('x-gateway-warning')).toContain(field);
    const strict = await (await serving(['x'], { strict: true })).post(path, body);
    expect([strict.status, strict.text]).toEqual([400, expect.stringContaining(field) as string]);
  });

  it('a tool that is named is the only one the model is shown', async () => {
    const gateway = await serving(['x']);
    const tool_choice = { type: 'function', function: { name: 'other' } };
    await gateway.post(CHAT, { messages: user('x'), tools: [tool, other], tool_choice });
    expect(gateway.prompts()[0]).toContain('"other"');
    expect(gateway.prompts()[0]).not.toContain('"add"');
  });

  it('is still an error where the answer would be of no use, and where nobody knows the field', async () => {
    const gateway = await serving(['x']);
    expect(await gateway.post(CHAT, { messages: user('x'), colour: 'red' })).toMatchObject({ status: 400 });
    expect(await gateway.post(CHAT, { messages: user('x'), modalities: ['audio'] })).toMatchObject({ status: 400 });
  });
});

it.each([
  [CHAT, { messages: user('x'), colour: null, user: 'me', prompt_cache_key: 'k', service_tier: 'auto' }],
  ['/v1/responses', { input: 'x', colour: null, conversation: null, previous_response_id: null, metadata: { a: 'b' } }],
  ['/v1/messages', { messages: user('x'), max_tokens: 9, colour: null, cache_control: { type: 'ephemeral' } }],
])('%s takes null for absent, and hints that change nothing, without a warning: %j', async (path, body) => {
  const { post } = await serving([thought('', 'fine')], { strict: true });
  const answer = await post(path, body);
  expect([answer.status, answer.headers.get('x-gateway-warning')]).toEqual([200, null]);
});

describe('the context', () => {
  it('without max_tokens, an answer may have what is left of it', async () => {
    const gateway = await serving(['fine'], { contextTokens: 100, maxTokens: 90 });
    await gateway.post(CHAT, { messages: user('x') });
    await gateway.post(CHAT, { messages: user('x'), max_tokens: 90 });
    await gateway.post(CHAT, { messages: user('x'), max_tokens: 5 });
    const [{ prompt } = { prompt: { length: 0 } }] = gateway.asked;
    const left = 100 - prompt.length;
    expect(gateway.asked.map(({ samplingParams }) => samplingParams?.maxTokens)).toEqual([left, left, 5]);
  });

  it('a prompt that fills it is refused by name, and one that is far too long before it is encoded', async () => {
    const gateway = await serving(['fine'], { contextTokens: 100 });
    for (const length of [100, 100_000]) {
      const { status, json } = await gateway.post(CHAT, { messages: user('x'.repeat(length)) });
      expect({ status, json }).toMatchObject({ status: 400, json: { error: { code: 'context_length_exceeded' } } });
    }
    const { status } = await gateway.post('/v1/completions', { prompt: 'x'.repeat(100_000) });
    expect([status, gateway.asked.length]).toEqual([400, 0]);
  });
});

describe('what would hold everybody up is refused', () => {
  const many = (length: number) => Array.from({ length }, () => ({ role: 'user', content: '' }));

  it.each([
    ['ten thousand messages', 400, CHAT, { messages: many(10_000) }],
    ['ten thousand items', 400, '/v1/responses', { input: many(10_000) }],
    ['a hundred thousand messages', 413, CHAT, { messages: many(100_000) }],
    ['two million ids', 413, '/v1/completions', { prompt: new Array(2_000_000).fill(1) }],
    ['a hundred thousand brackets', 413, CHAT, `{"messages":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['a word of 200,000 letters', 400, CHAT, { messages: user('a'.repeat(200_000)) }],
    ['many ids with logprobs', 400, '/v1/completions', { prompt: new Array(70_000).fill(1), echo: true, logprobs: 1 }],
  ])('%s: %i', async (_what, status, path, body) => {
    const gateway = await serving(['x']);
    expect([(await gateway.post(path, body)).status, gateway.asked.length]).toEqual([status, 0]);
  });

  it('and a long text with many signs in it is not', async () => {
    const gateway = await serving(['x']);
    const text = 'A list, [of] {many} "signs": '.repeat(10_000);
    expect((await gateway.post(CHAT, { messages: user(text) })).status).toBe(200);
  });

  it('logprobs of more tokens than one answer can list are cut, with a warning', async () => {
    const gateway = await serving(['x']);
    const asked = { messages: user('x'), logprobs: true, top_logprobs: 20, max_tokens: 10_000 };
    const { headers } = await gateway.post(CHAT, asked);
    expect(headers.get('x-gateway-warning')).toContain('max_tokens must be at most 1560');
    expect(gateway.asked[0]!.samplingParams?.maxTokens).toBe(1560);
  });
});
