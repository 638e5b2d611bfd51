/** Calls that pass a gateway, and what is written of them. The upstream is a gateway too, over a scripted sampler. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { lastValueFrom, Subject, toArray } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  recordCalls,
  type RecordCallsOptions,
  type ServedGateway,
  serveUpstream,
  type UpstreamOptions,
} from '../../../src/serve/index.js';
import { fromRecorded, type RecordedCall } from '../../../src/sources/index.js';
import { run } from '../../unit/cli/terminal.js';
import { thought } from '../support/thinkingRenderer.js';
import { closeAfterEach, model, serving, user } from './serving.js';

closeAfterEach();

let folder: string;
let file: string;
const open: ServedGateway[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tinker-rx-record-'));
  file = join(folder, 'calls.jsonl');
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((gateway) => gateway.close()));
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const called = thought('I need the sum.', 'Let me see.', ['add', { a: 1, b: 2 }]);

async function passing(
  replies: readonly (string | Error)[],
  options: Partial<UpstreamOptions> = {},
  recording: RecordCallsOptions = {},
) {
  const upstream = await serving(replies);
  const record = recordCalls(file, recording);
  const gateway = await serveUpstream({ upstream: upstream.url, upstreamKey: upstream.apiKey, record, ...options });
  open.push(gateway);
  const { apiKey } = gateway;
  return {
    gateway,
    upstream,
    openai: new OpenAI({ baseURL: gateway.baseURL, apiKey, maxRetries: 0 }),
    anthropic: new Anthropic({ baseURL: gateway.url, apiKey, maxRetries: 0 }),
    post: (path: string, body: object) =>
      fetch(`${gateway.url}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}` },
        body: JSON.stringify(body),
      }),
  };
}

const recorded = (): Promise<RecordedCall[]> => lastValueFrom(fromRecorded(file, { as: 'calls' }).pipe(toArray()));
const parameters = { type: 'object', properties: { a: { type: 'number' } } };
const toolCalls = [{ name: 'add', arguments: expect.stringMatching(/^{"a": ?1, ?"b": ?2}$/) as string }];

describe('an upstream, recorded', () => {
  it.each([false, true])("OpenAI's chat completions with tools and reasoning, streamed: %s", async (stream) => {
    const { openai, upstream } = await passing([called]);
    const body = {
      ...{ model, messages: user('1+2?'), temperature: 0.5 },
      tools: [{ type: 'function' as const, function: { name: 'add', description: 'Adds.', parameters } }],
    };
    if (stream) for await (const _ of await openai.chat.completions.create({ ...body, stream: true }));
    else await openai.chat.completions.create(body);
    expect(upstream.asked).toHaveLength(1);
    const [call] = await recorded();
    expect(call).toMatchObject({ api: 'chat', model, status: 200, params: { temperature: 0.5 }, finish: 'tool_calls' });
    expect(call!.replyId).toMatch(/^chatcmpl/);
    const [{ messages, tools }] = (await lastValueFrom(fromRecorded(file).pipe(toArray()))) as [never];
    expect(tools).toStrictEqual([{ name: 'add', description: 'Adds.', parameters }]);
    expect(messages).toMatchObject([
      { role: 'user', content: '1+2?' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'I need the sum.' },
          { type: 'text', text: 'Let me see.' },
        ],
        toolCalls,
      },
    ]);
  });

  it.each([false, true])("Anthropic's messages with tools and thinking, streamed: %s", async (stream) => {
    const { anthropic } = await passing([called]);
    const body = {
      ...{ model, max_tokens: 200, system: 'Add.', messages: user('1+2?') },
      tools: [{ name: 'add', description: 'Adds.', input_schema: { type: 'object' as const } }],
    };
    if (stream) {
      const seen: string[] = [];
      for await (const event of anthropic.messages.stream(body)) seen.push(event.type);
      expect(seen).toContain('content_block_delta');
    } else await anthropic.messages.create(body);
    const [call] = await recorded();
    expect(call).toMatchObject({ api: 'messages', status: 200, finish: 'tool_use' });
    const [{ messages }] = (await lastValueFrom(fromRecorded(file).pipe(toArray()))) as [never];
    expect(messages).toMatchObject([
      { role: 'system', content: 'Add.' },
      { role: 'user', content: '1+2?' },
      { role: 'assistant', toolCalls },
    ]);
  });

  it.each([false, true])("OpenAI's responses, streamed: %s", async (stream) => {
    const { openai } = await passing([thought('Hm.', 'Three.')]);
    if (stream) for await (const _ of await openai.responses.create({ model, input: '1+2?', stream: true }));
    else await openai.responses.create({ model, input: '1+2?' });
    const [task] = await lastValueFrom(fromRecorded(file, { as: 'tasks' }).pipe(toArray()));
    expect(task).toMatchObject({ messages: user('1+2?'), expected: 'Three.' });
  });

  it('passes status and body of a refusal on, and records it without a reply', async () => {
    const { post } = await passing(['x']);
    const refused = await post('/v1/chat/completions', { model: 'unknown', messages: user('Hi') });
    expect(refused.status).toBe(404);
    expect(await refused.json()).toMatchObject({ error: { message: expect.any(String) as string } });
    const [call] = await recorded();
    expect(call).toMatchObject({ status: 404, messages: user('Hi') });
    expect(call).not.toHaveProperty('reply');
    expect(await lastValueFrom(fromRecorded(file).pipe(toArray()))).toStrictEqual([]);
    expect((await post('/v1/files', {})).status).toBe(404);
  });

  it('keeps the refusal of its own key to itself, and says when nobody answers', async () => {
    const wrong = await passing(['x'], { upstreamKey: 'wrong-upstream-key' });
    const body = { model, messages: user('Hi') };
    const refused = await wrong.post('/v1/chat/completions', body);
    expect(refused.status).toBe(502);
    expect(await refused.text()).toContain('the upstream refused the key of this gateway');
    const gone = await passing(['x'], { upstream: 'http://127.0.0.1:1' });
    const lost = await gone.post('/v1/chat/completions', body);
    expect(lost.status).toBe(502);
    expect(await lost.text()).toContain('no answer of the upstream');
  });

  it('asks for another model where it was told to, and holds the limits of a key', async () => {
    const keys = [{ key: 'limited-key', models: ['other'] }];
    const { openai, gateway, post } = await passing(['One.'], { modelName: model, keys });
    const { choices } = await openai.chat.completions.create({ model: 'any', messages: user('Hi') });
    expect(choices[0]!.message.content).toBe('One.');
    const limited = await fetch(`${gateway.baseURL}/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer limited-key' },
      body: JSON.stringify({ model: 'any', messages: user('Hi') }),
    });
    expect(limited.status).toBe(404);
    expect((await post('/v1/chat/completions', { model: 'any', messages: user('Hi') })).status).toBe(200);
  });

  it('sends no header of callers on but those that change the answer', async () => {
    const seen: NodeJS.Dict<string | string[]>[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers);
      request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const { port } = server.address() as AddressInfo;
    const { gateway } = await passing(['x'], { upstream: `http://127.0.0.1:${port}/v1/`, upstreamKey: 'upstream-key' });
    await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': gateway.apiKey, cookie: 'a=b', 'anthropic-beta': 'tools', 'x-mine': '1' },
      body: '{"messages":[]}',
    });
    expect(seen[0]).toMatchObject({ 'x-api-key': 'upstream-key', 'anthropic-beta': 'tools' });
    for (const name of ['cookie', 'x-mine', 'authorization']) expect(seen[0]).not.toHaveProperty(name);
    await new Promise((closed) => server.close(closed));
  });

  it('writes no secret, wherever it stands, and only what the hook leaves', async () => {
    const redact: RecordCallsOptions['redact'] = (line) =>
      JSON.stringify(line).includes('private')
        ? undefined
        : (JSON.parse(JSON.stringify(line).replaceAll('Ada', 'NAME')) as typeof line);
    const { openai, gateway, upstream } = await passing(
      ['Your key is sk-proj-abcdefghijklmnopqrstuvwx.'],
      {},
      {
        redact,
        secrets: ['hunter22'],
      },
    );
    const said = `I am Ada, ${gateway.apiKey}, ${upstream.apiKey}, hunter22, Bearer abcdefgh12345678`;
    await openai.chat.completions.create({ model, messages: user(said) });
    await openai.chat.completions.create({ model, messages: user('private') });
    const text = readFileSync(file, 'utf8');
    expect(text.trim().split('\n')).toHaveLength(1);
    for (const secret of ['Ada', gateway.apiKey, upstream.apiKey, 'hunter22', 'abcdefgh12345678', 'sk-proj'])
      expect(text).not.toContain(secret);
    expect(text).toContain('I am NAME, [redacted], [redacted], [redacted], [redacted]');
  });

  it.each([
    ['https://x.test/a?q=1&api_key=Zz9_secret&b=2', 'https://x.test/a?q=1&api_key=[redacted]&b=2'],
    ['https://x.test/a?access_token=Zz9_secret', 'https://x.test/a?access_token=[redacted]'],
    ['https://x.test/f?X-Amz-Signature=Zz9_secret#end', 'https://x.test/f?X-Amz-Signature=[redacted]#end'],
    ['https://me:Zz9_secret@x.test/', 'https://[redacted]@x.test/'],
    ['curl -H "Authorization: Basic Zz9_secret=="', 'curl -H "Authorization: [redacted]"'],
    ['x-api-key: Zz9_secret\nnext', 'x-api-key: [redacted]\nnext'],
    ['Cookie: session=Zz9_secret; theme=dark\nnext', 'Cookie: [redacted]\nnext'],
    ['{"headers":{"Set-Cookie":"a=Zz9_secret"}}', '{"headers":{"Set-Cookie":"[redacted]"}}'],
    ['OPENAI_API_KEY=Zz9_secret npm start', 'OPENAI_API_KEY=[redacted] npm start'],
    ['-----BEGIN RSA PRIVATE KEY-----\nZz9_secret\n-----END RSA PRIVATE KEY-----', '[redacted]'],
  ])('finds the key in %j', async (said, kept) => {
    const { openai } = await passing(['One.']);
    await openai.chat.completions.create({ model, messages: user(said) });
    expect(await recorded()).toMatchObject([{ messages: user(kept) }]);
  });

  it.each(['The password: a word that nobody knows.', 'monkey=banana', 'Which cookies do you like?', 'key: value'])(
    'leaves plain text as it is: %s',
    async (said) => {
      const { openai } = await passing(['One.']);
      await openai.chat.completions.create({ model, messages: user(said) });
      expect(await recorded()).toMatchObject([{ messages: user(said) }]);
    },
  );

  it('writes the arguments of a tool without the fields that hold a key', async () => {
    const { openai } = await passing(['One.']);
    const call = { name: 'get', arguments: '{"url":"https://x.test","headers":{"authorization":"Zz9_secret"}}' };
    await openai.chat.completions.create({
      model,
      messages: [
        ...user('Get it.'),
        { role: 'assistant', content: '', tool_calls: [{ id: 'a', type: 'function', function: call }] },
        { role: 'tool', tool_call_id: 'a', content: '{"api_key": "Zz9_secret"}' },
      ],
    });
    expect(readFileSync(file, 'utf8')).not.toContain('Zz9_secret');
    const [{ messages }] = (await lastValueFrom(fromRecorded(file).pipe(toArray()))) as [never];
    expect(messages).toMatchObject([
      {},
      { toolCalls: [{ arguments: '{"url":"https://x.test","headers":{"authorization":"[redacted]"}}' }] },
      { content: '{"api_key": "[redacted]"}' },
      {},
    ]);
  });

  it('goes on where a call cannot be written', async () => {
    const failures: unknown[] = [];
    const redact = () => {
      throw new Error('no');
    };
    const { openai } = await passing(['One.'], {}, { redact, onError: (error) => failures.push(error) });
    const { choices } = await openai.chat.completions.create({ model, messages: user('Hi') });
    expect(choices[0]!.message.content).toBe('One.');
    expect(failures).toMatchObject([{ message: 'no' }]);
    expect(readFileSync(file, 'utf8')).toBe('');
  });
});

describe('feedback', () => {
  it('is joined by the id of the reply or of the request', async () => {
    const { post } = await passing(['One.']);
    const reply = await post('/v1/chat/completions', { model, messages: user('Hi') });
    const { id } = (await reply.json()) as { id: string };
    await post('/feedback', { id, rating: 'down' });
    await post('/v1/feedback', {
      id: reply.headers.get('x-request-id'),
      rating: 0.5,
      correction: 'Two.',
      comment: 'ok',
    });
    expect(await recorded()).toMatchObject([{ rating: 0.5, correction: 'Two.' }]);
  });

  it('goes through the hook, too', async () => {
    const redact: RecordCallsOptions['redact'] = (line) =>
      line.type === 'call' ? line : { ...line, comment: 'NAME', correction: 'Two.' };
    const { post } = await passing(['One.'], {}, { redact });
    const reply = await post('/v1/chat/completions', { model, messages: user('Hi') });
    const { id } = (await reply.json()) as { id: string };
    await post('/feedback', { id, comment: 'Ada says no', correction: 'Two, says Ada.' });
    expect(readFileSync(file, 'utf8')).not.toContain('Ada');
    expect(await recorded()).toMatchObject([{ correction: 'Two.' }]);
  });

  it('of an id that no call has is kept, and changes nothing', async () => {
    const { post } = await passing(['One.']);
    expect((await post('/feedback', { id: 'chatcmpl-of-nobody', rating: 'up' })).status).toBe(200);
    await post('/v1/chat/completions', { model, messages: user('Hi') });
    const [call, ...more] = await recorded();
    expect(more).toStrictEqual([]);
    expect(call).not.toHaveProperty('rating');
  });

  it('is refused where it says nothing', async () => {
    const { post } = await passing(['One.']);
    const problem = async (body: object) => {
      const response = await post('/feedback', body);
      return [response.status, ((await response.json()) as { error: { message: string } }).error.message];
    };
    expect(await problem({ rating: 1 })).toStrictEqual([400, expect.stringContaining('id is missing')]);
    expect(await problem({ id: 'a' })).toStrictEqual([400, 'rating, correction or comment is missing']);
    expect(await problem({ id: 'a', rating: 'so so' })).toStrictEqual([400, expect.stringContaining('rating must be')]);
    expect(await problem({ id: 'a', rating: 1, extra: 1 })).toStrictEqual([400, expect.stringContaining('extra')]);
  });
});

describe('a sampler, recorded', () => {
  it('is written in the same way', async () => {
    const gateway = await serving(['One.'], { record: recordCalls(file) });
    await gateway.post('/v1/chat/completions', { model, messages: user('Hi'), stream: true });
    const [task] = await lastValueFrom(fromRecorded(file, { as: 'tasks' }).pipe(toArray()));
    expect(task).toMatchObject({ messages: user('Hi'), expected: 'One.' });
  });
});

describe('tinker-rx serve --upstream', () => {
  it('passes calls on and records them until it is interrupted', async () => {
    const upstream = await serving(['One.']);
    vi.stubEnv('MY_KEY', upstream.apiKey);
    vi.stubEnv('NO_COLOR', '1');
    const hook = join(folder, 'redact.mjs');
    writeFileSync(hook, 'export default (call) => ({ ...call, model: "hidden" });');
    const interrupted$ = new Subject<void>();
    const flags = ['--upstream', upstream.baseURL, '--upstream-key', 'MY_KEY', '--key', 'key-of-callers'];
    const printed: string[] = [];
    const running = run(['serve', ...flags, '--port', '0', '--record', file, '--redact', hook, '--access-log'], {
      interrupted$,
      onWrite: (text) => printed.push(text),
    });
    const url = await vi.waitFor(() => {
      const [, found] = /ANTHROPIC_BASE_URL=(\S+)/.exec(printed.join('')) ?? [];
      expect(found).toBeDefined();
      return found!;
    }, 240_000);
    const reply = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer key-of-callers' },
      body: JSON.stringify({ model, messages: user('Hi') }),
    });
    expect(reply.status).toBe(200);
    await reply.text();
    interrupted$.next();
    expect((await running).code).toBe(0);
    expect(await recorded()).toMatchObject([{ model: 'hidden', reply: { content: 'One.' } }]);
  });

  it('asks for the newest checkpoint of a run that is named by its folder', async () => {
    const run1 = join(folder, 'run');
    mkdirSync(run1);
    const saved = { name: 'a', steps: 1, batches: 1, samplerPath: 'tinker://x/sampler_weights/000001' };
    writeFileSync(join(run1, 'checkpoints.jsonl'), `${JSON.stringify(saved)}\n`);
    const interrupted$ = new Subject<void>();
    const printed: string[] = [];
    const running = run(['serve', '--upstream', 'http://127.0.0.1:1', '-m', run1], {
      ...{ interrupted$, onWrite: (text: string) => printed.push(text) },
    });
    await vi.waitFor(() => expect(printed.join('')).toContain('# model: tinker://x/sampler_weights/000001'));
    interrupted$.next();
    expect((await running).code).toBe(0);
  });

  it('says what is missing', async () => {
    expect((await run(['serve'])).stderr).toContain('No model');
    expect((await run(['serve', '-m', 'a', '--redact', 'x.mjs'])).stderr).toContain('--redact without --record');
    const unset = await run(['serve', '--upstream', 'http://127.0.0.1:1', '--upstream-key', 'NOT_SET_ANYWHERE']);
    expect(unset.stderr).toContain('NOT_SET_ANYWHERE is not set');
    expect((await run(['serve', '--upstream', 'elsewhere'])).stderr).toContain("must be a URL or 'hosted'");
  });
});
