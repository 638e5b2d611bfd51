import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import { LocalTinker } from '../../../src/local/index.js';
import { ModelInput, ServiceClient } from '../../../src/index.js';
import { serveSampler } from '../../../src/serve/index.js';
import { thought } from '../support/thinkingRenderer.js';
import { closeAfterEach, model, serving, user } from './serving.js';

closeAfterEach();

const TEXT = '/v1/completions';

describe('completions', () => {
  it('stream no usage unless it is asked for', async () => {
    const gateway = await serving(['upon a time']);
    const openai = new OpenAI({ baseURL: gateway.baseURL, apiKey: gateway.apiKey });
    const texts: string[] = [];
    for await (const chunk of await openai.completions.create({ model, prompt: 'Once ', stream: true, max_tokens: 30 }))
      texts.push(chunk.choices[0]!.text);
    expect(texts.join('')).toBe('upon a time');
    const { text } = await gateway.post(TEXT, { prompt: 'x', stream: true, stream_options: { include_usage: true } });
    expect(text).toContain('"choices":[],"usage"');
  });

  it('continue several prompts, as texts and as ids', async () => {
    const gateway = await serving(['one', 'two']);
    const { json } = await gateway.post(TEXT, { prompt: ['a', 'b'], n: 2, max_tokens: 9 });
    expect(json).toMatchObject({
      choices: [
        { index: 0, text: 'one' },
        { index: 1, text: 'one' },
        { index: 2, text: 'two' },
        { index: 3, text: 'two' },
      ],
      usage: { prompt_tokens: 2 },
    });
    await gateway.post(TEXT, { prompt: [[97, 98], [99]], max_tokens: 9 });
    expect(gateway.prompts()).toEqual(['a', 'b', 'ab', 'c']);
    expect((await gateway.post(TEXT, { prompt: ['a', 1] })).status).toBe(400);
  });

  it('list logprobs without the end, and without what stood behind a stop string', async () => {
    const gateway = await serving(['one two three']);
    const ask = async (rest: object) => {
      const { json } = await gateway.post(TEXT, { prompt: 'x', max_tokens: 30, logprobs: 0, ...rest });
      return (json as OpenAI.Completion).choices[0]!.logprobs?.tokens?.join('');
    };
    expect(await ask({ stop: ' th' })).toBe('one two');
    const chat = await gateway.post('/v1/chat/completions', { messages: user('x'), logprobs: true, stop: ' th' });
    const [choice] = (chat.json as OpenAI.ChatCompletion).choices;
    expect(choice!.logprobs?.content?.map(({ token }) => token).join('')).toBe('one two');
  });

  it('give the ids of their tokens and of the prompt', async () => {
    const gateway = await serving([thought('Hm.', 'ok')]);
    const asked = { messages: user('x'), return_token_ids: true, logprobs: true };
    const { json } = await gateway.post('/v1/chat/completions', asked);
    const { prompt_token_ids, choices } = json as {
      prompt_token_ids: number[];
      choices: { token_ids: number[]; logprobs: { content: unknown[] } }[];
    };
    expect(prompt_token_ids).toEqual([...gateway.asked[0]!.prompt.toInts()]);
    expect(choices[0]!.token_ids.at(-1)).toBe(257);
    expect(choices[0]!.logprobs.content).toHaveLength(choices[0]!.token_ids.length);
    const text = await gateway.post(TEXT, { prompt: 'ab', return_token_ids: true });
    expect(text.json).toMatchObject({ choices: [{ prompt_token_ids: [97, 98] }] });
  });

  it('score a prompt as the sampler does, without sampling', async () => {
    const local = await LocalTinker.start();
    const service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey, telemetry: false });
    const sampler = await service.createSamplingClient({ baseModel: 'tinker-rx/tiny' });
    const gateway = await serveSampler(sampler, { service });
    const openai = new OpenAI({ baseURL: gateway.baseURL, apiKey: gateway.apiKey });
    const prompt = 'The capital';
    const { choices, usage } = await openai.completions.create({
      model: 'tinker-rx/tiny',
      prompt,
      max_tokens: 0,
      logprobs: 2,
      echo: true,
    });
    const { tokenizer } = await sampler.getRenderer();
    const exact = await sampler.computeLogprobs(ModelInput.fromInts(tokenizer.encode(prompt)));
    const { token_logprobs, top_logprobs, tokens } = choices[0]!.logprobs!;
    expect([choices[0]!.text, tokens?.join(''), usage?.completion_tokens]).toEqual([prompt, prompt, 0]);
    expect(token_logprobs?.[0]).toBeNull();
    expect(token_logprobs?.slice(1)).toEqual([...exact.slice(1)]);
    expect(Object.values(top_logprobs![1]!).every((value) => value <= 0)).toBe(true);
    await gateway.close();
    await service.close();
    await local.close();
  });
});

describe('a stream', () => {
  it('has the logprobs of its tokens with them', async () => {
    const gateway = await serving([thought('Hm.', 'one two')], { pieceTokens: 4 });
    const openai = new OpenAI({ baseURL: gateway.baseURL, apiKey: gateway.apiKey });
    const stream = await openai.chat.completions.create({ model, messages: user('x'), stream: true, logprobs: true });
    let text = '';
    let tokens = '';
    let chunks = 0;
    for await (const { choices } of stream) {
      const [choice] = choices;
      text += choice!.delta.content ?? '';
      const rows = choice!.logprobs?.content?.map(({ token }) => token).join('') ?? '';
      if (rows !== '') chunks++;
      tokens += rows;
    }
    expect(tokens).toBe('<think>\nHm.\n</think>\n\none two'.slice(0, tokens.length));
    expect([text, tokens.endsWith('one two'), chunks > 2]).toEqual(['one two', true, true]);
  });

  it.each([
    ['/v1/chat/completions', { messages: user('x') }],
    ['/v1/responses', { input: 'x' }],
    ['/v1/messages', { messages: user('x'), max_tokens: 9 }],
    [TEXT, { prompt: 'x' }],
  ])('of %s that fails before its first event has the status of the failure', async (path, body) => {
    const gateway = await serving(['x'], { contextTokens: 1 });
    expect(await gateway.post(path, { ...body, stream: true })).toMatchObject({ status: 400 });
  });
});
