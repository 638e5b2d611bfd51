/**
 * The hosted service's inference endpoints, by their documentation: against our own gateway, and against replies written by hand in the
 * documented shape of Anthropic's API. Not run on the hosted service.
 */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { generateText, isStepCount, jsonSchema, streamText, tool } from 'ai';
import { firstValueFrom, lastValueFrom, toArray } from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { tinker } from '../../../src/ai-sdk/index.js';
import { AuthenticationError } from '../../../src/client/errors.js';
import { streamHosted } from '../../../src/serve/hosted/streamHosted.js';
import { hostedEndpoints, serveUpstream } from '../../../src/serve/index.js';
import { run } from '../../unit/cli/terminal.js';
import { thought } from '../support/thinkingRenderer.js';
import { closeAfterEach, model, serving, user } from './serving.js';

closeAfterEach();

const PATH = 'tinker://run/sampler_weights/final';
const event = (type: string, rest: object = {}) => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
/** Hand-written from Anthropic's documentation of streams. */
const REPLY = [
  event('message_start', {
    message: { id: 'msg_1', role: 'assistant', content: [], usage: { input_tokens: 7, cache_read_input_tokens: 3 } },
  }),
  event('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } }),
  event('content_block_delta', { index: 0, delta: { type: 'thinking_delta', thinking: 'Hm.' } }),
  event('content_block_delta', { index: 0, delta: { type: 'signature_delta', signature: 'abc' } }),
  event('content_block_stop', { index: 0 }),
  event('ping'),
  event('content_block_start', { index: 1, content_block: { type: 'text', text: '' } }),
  event('content_block_delta', { index: 1, delta: { type: 'text_delta', text: 'Hel' } }),
  event('content_block_delta', { index: 1, delta: { type: 'text_delta', text: 'lo.' } }),
  event('content_block_stop', { index: 1 }),
  event('content_block_start', {
    index: 2,
    content_block: { type: 'tool_use', id: 'toolu_1', name: 'add', input: {} },
  }),
  event('content_block_delta', { index: 2, delta: { type: 'input_json_delta', partial_json: '{"a":' } }),
  event('content_block_delta', { index: 2, delta: { type: 'input_json_delta', partial_json: '1}' } }),
  event('content_block_stop', { index: 2 }),
  event('message_delta', { delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 9 } }),
  event('message_stop'),
];

interface Seen {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown>;
  closed: boolean;
}
let server: Server | undefined;
afterEach(async () => {
  vi.unstubAllEnvs();
  server?.closeAllConnections();
  await new Promise((closed) => (server === undefined ? closed(undefined) : server.close(closed)));
  server = undefined;
});

/** A service that says what it is given to say, and keeps what it was asked. */
async function saying(
  parts: readonly string[],
  { status = 200, stays = false, headers = {}, then = undefined as readonly string[] | undefined } = {},
): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  server = createServer((request, response) => {
    const read: Buffer[] = [];
    request.on('data', (part: Buffer) => read.push(part));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(read).toString() || '{}') as Seen['body'];
      const entry: Seen = { url: request.url!, headers: request.headers, body, closed: false };
      seen.push(entry);
      response.on('close', () => (entry.closed = true));
      // With `then`, only the first call of a test is answered as told.
      const isLater = then !== undefined && seen.length > 1;
      const now = isLater ? 200 : status;
      response.writeHead(now, { 'content-type': now === 200 ? 'text/event-stream' : 'application/json', ...headers });
      for (const part of isLater ? then : parts) response.write(part);
      if (!stays) response.end();
    });
  });
  await new Promise<void>((listening) => server!.listen(0, '127.0.0.1', listening));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}
const asked = (url: string) => ({ url, apiKey: 'key-1234', model: PATH });

describe('an inference endpoint in the AI SDK', () => {
  it('is asked at the documented address, with the key and the path of the checkpoint', async () => {
    const { url, seen } = await saying(REPLY);
    vi.stubEnv('TINKER_BASE_URL', url);
    vi.stubEnv('TINKER_API_KEY', 'tml-of-the-user');
    const { text, reasoningText, toolCalls, usage } = await generateText({
      model: tinker(PATH, { endpoint: 'hosted', samplingParams: { topK: 5 } }),
      ...{ system: 'Be brief.', prompt: 'Hi', maxOutputTokens: 50, stopSequences: ['END'] },
      tools: { add: tool({ description: 'Adds.', inputSchema: jsonSchema<{ a: number }>({ type: 'object' }) }) },
    });
    expect([text, reasoningText]).toStrictEqual(['Hello.', 'Hm.']);
    expect(toolCalls).toMatchObject([{ toolCallId: 'toolu_1', toolName: 'add', input: { a: 1 } }]);
    expect([usage.inputTokens, usage.outputTokens]).toStrictEqual([10, 9]);
    expect(seen[0]!.url).toBe('/anthropic/api/v1/messages');
    expect(seen[0]!.headers).toMatchObject({ 'x-api-key': 'tml-of-the-user', 'anthropic-version': '2023-06-01' });
    expect(seen[0]!.body).toStrictEqual({
      ...{ model: PATH, max_tokens: 50, stream: true, system: 'Be brief.', top_k: 5, stop_sequences: ['END'] },
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
      tools: [{ name: 'add', description: 'Adds.', input_schema: { type: 'object' } }],
    });
  });

  it('streams text while the service still writes, and ends the request when it is aborted', async () => {
    const { url, seen } = await saying(REPLY.slice(0, 8), { stays: true });
    const abort = new AbortController();
    const { textStream } = streamText({
      ...{ model: tinker(PATH, { endpoint: url, apiKey: 'key-1234' }), prompt: 'Hi', abortSignal: abort.signal },
      onError: () => undefined,
    });
    for await (const part of textStream) {
      expect(part).toBe('Hel');
      abort.abort();
    }
    await vi.waitFor(() => expect(seen[0]!.closed).toBe(true));
  });

  it('runs the AI SDK’s loop with tools and reasoning on our own gateway, as a sampler does', async () => {
    const add = tool({
      description: 'Adds.',
      inputSchema: jsonSchema<{ a: number; b: number }>({ type: 'object' }),
      execute: ({ a, b }) => a + b,
    });
    const gateway = await serving([thought('Add.', '', ['add', { a: 2, b: 3 }]), thought('Now.', 'It is 5.')]);
    const { text, steps } = await generateText({
      model: tinker(model, { endpoint: gateway.url, apiKey: gateway.apiKey }),
      ...{ prompt: '2 and 3?', tools: { add }, stopWhen: isStepCount(3) },
    });
    expect(text).toBe('It is 5.');
    expect(steps.map(({ finishReason, reasoningText }) => [finishReason, reasoningText])).toStrictEqual([
      ['tool-calls', 'Add.'],
      ['stop', 'Now.'],
    ]);
    expect(gateway.prompts().at(-1)).toContain('<tool_response>\n5\n</tool_response>');
  });
});

describe('wishes that only an inference endpoint can grant', () => {
  const add = tool({
    description: 'Adds.',
    inputSchema: jsonSchema<{ a: number }>({ type: 'object' }),
    execute: ({ a }) => a,
  });

  it.each([
    ['none', { thinking: { type: 'disabled' } }],
    ['minimal', { output_config: { effort: 'low' } }],
    ['high', { output_config: { effort: 'high' } }],
    ['max', { output_config: { effort: 'max' } }],
    ['provider-default', {}],
  ] as const)('reasoning %s is sent, without a warning', async (reasoning, sent) => {
    const { url, seen } = await saying(REPLY);
    const { warnings } = await generateText({
      ...{ model: tinker(PATH, { endpoint: url, apiKey: 'key-1234' }), prompt: 'Hi', maxOutputTokens: 9, reasoning },
    });
    expect(warnings).toStrictEqual([]);
    const { model: _, max_tokens: __, stream: ___, messages: ____, ...rest } = seen[0]!.body;
    expect(rest).toStrictEqual(sent);
  });

  it.each([
    ['required', { type: 'any' }],
    [
      { type: 'tool', toolName: 'add' },
      { type: 'tool', name: 'add' },
    ],
    ['auto', undefined],
  ] as const)('the choice of a tool is sent: %j', async (toolChoice, sent) => {
    const { url, seen } = await saying(REPLY);
    const { warnings } = await generateText({
      ...{ model: tinker(PATH, { endpoint: url, apiKey: 'key-1234' }), prompt: 'Hi', tools: { add }, toolChoice },
    });
    expect(warnings).toStrictEqual([]);
    expect(seen[0]!.body['tool_choice']).toStrictEqual(sent);
  });

  it('what has no place there is a warning', async () => {
    const { url } = await saying(REPLY);
    const { warnings } = await generateText({
      ...{ model: tinker(PATH, { endpoint: url, apiKey: 'key-1234' }), prompt: 'Hi', seed: 1, presencePenalty: 1 },
    });
    expect(warnings).toMatchObject([{ feature: 'presencePenalty' }, { feature: 'seed' }]);
  });

  it('a model with a context length of its own is named with a semicolon', async () => {
    const { url, seen } = await saying(REPLY);
    const name = `thinkingmachines/Inkling:peft:262144;${PATH}`;
    const { response } = await generateText({
      model: tinker(name, { endpoint: url, apiKey: 'key-1234' }),
      prompt: 'Hi',
    });
    expect([seen[0]!.body['model'], response.modelId]).toStrictEqual([name, name]);
  });
});

describe('failures of an inference endpoint', () => {
  it.each([
    ['a 429', 429, [JSON.stringify({ error: { type: 'rate_limit_error', message: 'slow down' } })]],
    ['a 529', 529, ['{}']],
    ['an overloaded stream', 200, [event('error', { error: { type: 'overloaded_error', message: 'Overloaded' } })]],
  ])('%s is tried again by the AI SDK, as often as it is told to', async (_name, status, parts) => {
    const { url, seen } = await saying(parts, { status, headers: { 'retry-after-ms': '1' }, then: REPLY });
    const ask = { model: tinker(PATH, { endpoint: url, apiKey: 'key-1234' }), prompt: 'Hi' };
    if (status !== 200) {
      await expect(generateText({ ...ask, maxRetries: 0 })).rejects.toMatchObject({ isRetryable: true });
      seen.length = 0;
    }
    const { text } = await generateText({ ...ask, maxRetries: 1 });
    expect(text).toBe('Hello.');
    expect(seen).toHaveLength(2);
  });

  it('a stream that is refused is tried again, too', async () => {
    const { url, seen } = await saying(['{}'], { status: 503, headers: { 'retry-after-ms': '1' }, then: REPLY });
    const { text } = streamText({ model: tinker(PATH, { endpoint: url, apiKey: 'key-1234' }), prompt: 'Hi' });
    expect(await text).toBe('Hello.');
    expect(seen).toHaveLength(2);
  });

  it('a connection that is lost within a reply is an error of the connection', async () => {
    const { url, seen } = await saying(REPLY.slice(0, 8), { stays: true });
    const lost = lastValueFrom(streamHosted(asked(url), { messages: user('Hi') }).pipe(toArray()));
    await vi.waitFor(() => expect(seen).toHaveLength(1));
    server!.closeAllConnections();
    await expect(lost).rejects.toMatchObject({ code: 'connection', retryable: true });
  });

  it('never tell the key, also where the service repeats it', async () => {
    const { url } = await saying([JSON.stringify({ error: { message: 'no such key: key-1234' } })], { status: 401 });
    const failed = await generateText({
      ...{ model: tinker(PATH, { endpoint: url, apiKey: 'key-1234' }), prompt: 'Hi', maxRetries: 0 },
    }).catch((error: unknown) => error);
    expect(inspect(failed, { depth: 9 })).toContain('[redacted]');
    expect(inspect(failed, { depth: 9 })).not.toContain('key-1234');
  });

  it('a redirect is not followed, so that the key goes nowhere else', async () => {
    const { url, seen } = await saying([], { status: 307, headers: { location: '/elsewhere' } });
    await expect(lastValueFrom(streamHosted(asked(url), { messages: user('Hi') }))).rejects.toThrow(/307/);
    expect(seen).toHaveLength(1);
  });

  it('a stream that is not of this API says so', async () => {
    const html = streamHosted(asked((await saying(['data: <html>\n\n'])).url), { messages: user('Hi') });
    await expect(lastValueFrom(html)).rejects.toMatchObject({ code: 'invalid_response' });
  });

  it('a last event without an empty line behind it counts', async () => {
    const { url } = await saying([...REPLY.slice(0, -1), REPLY.at(-1)!.trimEnd()]);
    const deltas = await lastValueFrom(streamHosted(asked(url), { messages: user('Hi') }).pipe(toArray()));
    expect(deltas.at(-1)).toMatchObject({ type: 'reply', reply: { text: 'Hello.' } });
  });

  const failing = async (parts: readonly string[], status = 200) =>
    lastValueFrom(streamHosted(asked((await saying(parts, { status })).url), { messages: user('Hi') }).pipe(toArray()));

  it('are the errors of the client, by status', async () => {
    const refusal = JSON.stringify({ type: 'error', error: { type: 'authentication_error', message: 'bad key' } });
    await expect(failing([refusal], 401)).rejects.toThrow(AuthenticationError);
    await expect(failing([refusal], 401)).rejects.toThrow(/401/);
    const nobody = streamHosted(asked('http://127.0.0.1:1'), { messages: user('Hi') });
    await expect(firstValueFrom(nobody)).rejects.toMatchObject({ code: 'connection' });
  });

  it('are found inside a stream, and where it breaks off', async () => {
    await expect(failing(REPLY.slice(0, 9))).rejects.toThrow('the stream of the reply broke off');
    const overloaded = event('error', { error: { type: 'overloaded_error', message: 'Overloaded' } });
    await expect(failing([...REPLY.slice(0, 8), overloaded])).rejects.toMatchObject({
      ...{ status: 529, retryable: true, message: 'POST /v1/messages: 529 Overloaded' },
    });
  });
});

describe('tinker-rx chat --endpoint', () => {
  it('prints a reply of the gateway, and keeps the conversation', async () => {
    const gateway = await serving([thought('Hm.', 'One.'), thought('', 'Two.')]);
    vi.stubEnv('TINKER_API_KEY', gateway.apiKey);
    vi.stubEnv('NO_COLOR', '1');
    const { code, stdout, stderr } = await run(['chat', '-m', model, '--endpoint', gateway.url], { input: 'a\nb\n' });
    expect(code, stderr).toBe(0);
    expect(stdout).toBe('Hm.\nOne.\nTwo.\n');
    expect(gateway.prompts()[1]).toContain('One.');
  });

  it('says what the service refused', async () => {
    const gateway = await serving(['One.']);
    vi.stubEnv('TINKER_API_KEY', 'not-the-key');
    const { code, stderr } = await run(['chat', '-m', model, '--endpoint', gateway.url], { input: 'a\n' });
    expect(code).toBe(1);
    expect(stderr).toContain('401');
    expect(stderr).not.toContain('not-the-key');
  });
});

describe('serve --upstream hosted', () => {
  it('passes both APIs on to the documented addresses', async () => {
    const { url, seen } = await saying(['{}']);
    vi.stubEnv('TINKER_BASE_URL', `${url}/services/tinker-prod/`);
    expect(hostedEndpoints()).toStrictEqual({
      openai: `${url}/services/tinker-prod/oai/api/v1`,
      anthropic: `${url}/services/tinker-prod/anthropic/api`,
    });
    const gateway = await serveUpstream({ upstream: 'hosted', upstreamKey: 'tml-key', modelName: PATH });
    for (const path of ['/v1/chat/completions', '/v1/messages', '/v1/messages/count_tokens'])
      await fetch(`${gateway.url}${path}`, {
        method: 'POST',
        headers: { 'x-api-key': gateway.apiKey },
        body: '{"model":"any"}',
      });
    await gateway.close();
    expect(
      seen.map(({ url: path, body, headers }) => [
        path,
        body['model'],
        headers['authorization'] ?? headers['x-api-key'],
      ]),
    ).toStrictEqual([
      ['/services/tinker-prod/oai/api/v1/chat/completions', PATH, 'Bearer tml-key'],
      ['/services/tinker-prod/anthropic/api/v1/messages', PATH, 'tml-key'],
      ['/services/tinker-prod/anthropic/api/v1/messages/count_tokens', PATH, 'tml-key'],
    ]);
  });
});
