import { firstValueFrom, lastValueFrom, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ServiceClient } from 'tinker-rx';
import { ByteTokenizer, getRenderer } from 'tinker-rx/chat';
import { LocalTinker } from 'tinker-rx/local';
import { fakeTransport, VirtualClock, type FakeTransportOptions } from 'tinker-rx/testing';

const renderer = getRenderer('tinker_rx_bytes', new ByteTokenizer());
const [END] = renderer.getStopSequences() as readonly number[];
const text = 'It is Paris.';
const tokens = [...renderer.tokenizer.encode(text), END!];

/** A sampler at a service that says `text`, however it is asked. */
function stage(options: Partial<FakeTransportOptions> = {}) {
  const clock = new VirtualClock();
  const start = { value: 0 };
  const fake = fakeTransport({
    scheduler: clock,
    sample: ({ prompt, samplingParams: { maxTokens = Infinity } }) => {
      start.value ||= prompt.length;
      const from = prompt.length - start.value;
      const sampled = tokens.slice(from, from + maxTokens);
      return {
        sequences: [
          {
            tokens: Int32Array.from(sampled),
            logprobs: new Float32Array(sampled.length),
            stopReason: sampled.at(-1) === END ? ('stop' as const) : ('length' as const),
          },
        ],
        promptCacheHitTokens: 0,
      };
    },
    ...options,
  });
  const service = new ServiceClient(fake.clientOptions);
  return { clock, fake, sampler: clock.resolve(service.createSamplingClient({ baseModel: 'any' })) };
}

describe('reply', () => {
  it('renders, samples, stops and parses in one call', () => {
    const { clock, fake, sampler } = stage();
    const samplingParams = { maxTokens: 20, temperature: 0 };
    const reply = clock.resolve(sampler.reply('Where?', { renderer, system: 'Be brief.', samplingParams }));
    expect(reply).toMatchObject({ text, termination: 'stop', message: { role: 'assistant', content: text } });
    expect([...reply.sequence.tokens]).toStrictEqual(tokens);
    const asked = renderer.buildGenerationPrompt([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Where?' },
    ]);
    expect(fake.to('asample').map(({ json }) => json)).toMatchObject([
      { prompt: { chunks: [{ tokens: [...asked.toInts()] }] }, sampling_params: { max_tokens: 20, stop: [END] } },
    ]);
  });

  it('takes a conversation, and refuses an option that it does not have', () => {
    const { clock, sampler } = stage();
    const reply = clock.resolve(sampler.reply([{ role: 'user', content: 'Where?' }], { renderer }));
    expect(reply.text).toBe(text);
    expect(() => clock.resolve(sampler.reply('Where?', { renderer, maxTokens: 3 } as never))).toThrow('maxTokens');
  });

  it('is cancelled as any call is', () => {
    const { clock, fake, sampler } = stage({ workMs: 60_000 });
    const reply = sampler.reply('Where?', { renderer });
    clock.advanceBy(1000);
    reply.cancel();
    expect(() => clock.resolve(reply)).toThrow('cancel');
    clock.advanceBy(60_000);
    expect(fake.requests.filter(({ state }) => state === 'open')).toStrictEqual([]);
  });
});

describe('reply$', () => {
  const read = (options: Parameters<ReturnType<typeof stage>['sampler']['reply$']>[1], workMs = 0) => {
    const { clock, fake, sampler } = stage({ workMs });
    const deltas = clock.resolve(sampler.reply$('Where?', { renderer, ...options }).pipe(toArray()));
    return { asked: fake.to('asample').length, deltas };
  };

  it('is cold, and gives the whole text at once without pieces', () => {
    const { fake, sampler } = stage();
    sampler.reply$('Where?', { renderer });
    expect(fake.to('asample')).toStrictEqual([]);
    const { asked, deltas } = read({});
    expect(deltas.map(({ type }) => type)).toStrictEqual(['header', 'text', 'end']);
    expect(asked).toBe(1);
  });

  it('gives the text as its pieces arrive, each a request of its own', () => {
    const { asked, deltas } = read({ pieceTokens: 4 });
    const said = deltas.flatMap((delta) => (delta.type === 'text' ? [delta.text] : []));
    expect(said.length).toBeGreaterThan(2);
    expect(said.join('')).toBe(text);
    expect(asked).toBe(Math.ceil(tokens.length / 4));
    expect(deltas.at(-1)).toMatchObject({ type: 'end', response: { text, termination: 'stop' } });
  });

  it('cancels the piece in flight when it is unsubscribed from, and asks for no other', () => {
    const { clock, fake, sampler } = stage({ workMs: 10_000 });
    const reading = sampler.reply$('Where?', { renderer, pieceTokens: 4 }).subscribe();
    clock.advanceBy(15_000);
    reading.unsubscribe();
    clock.advanceBy(60_000);
    expect(fake.to('asample')).toHaveLength(2);
    expect(fake.requests.filter(({ state }) => state === 'open')).toStrictEqual([]);
  });
});

describe('with the embedded service', () => {
  let local: LocalTinker;
  let service: ServiceClient;
  beforeAll(async () => {
    local = await LocalTinker.start();
    service = new ServiceClient({ baseUrl: local.url, apiKey: local.apiKey });
  });
  afterAll(async () => {
    await service.close();
    await local.close();
  });

  it("finds the model's renderer by itself, once", async () => {
    const sampler = await service.createSamplingClient({ baseModel: 'tinker-rx/tiny' });
    const options = { samplingParams: { maxTokens: 12, temperature: 0 } };
    const { text: said } = await sampler.reply('What is the capital of France?', options);
    expect(said).not.toBe('');
    const streamed = sampler.reply$('What is the capital of France?', { ...options, pieceTokens: 5 });
    expect(await lastValueFrom(streamed)).toMatchObject({ type: 'end', response: { text: said } });
    expect(await firstValueFrom(streamed)).toMatchObject({ type: 'header' });
  });
});
