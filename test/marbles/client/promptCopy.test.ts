import { describe, expect, it } from 'vitest';
import { ModelInput, type ModelInputChunk } from 'tinker-rx';
import type { FakeRequest } from 'tinker-rx/testing';
import { stage } from './stage.js';

/** The first chunk of each prompt that was sent. */
const sentChunks = (requests: readonly FakeRequest[]): unknown[] =>
  requests.map(({ json }) => (json['prompt'] as { chunks: unknown[] }).chunks[0]);
const sentTokens = (requests: readonly FakeRequest[]): unknown[] =>
  sentChunks(requests).map((chunk) => (chunk as { tokens: number[] }).tokens);

describe('a prompt', () => {
  it('is sampled as it was when the call was made, however long the call waits', () => {
    const on = stage({ latencyMs: 100 });
    const sampler = on.sampler();
    const tokens = Int32Array.of(1, 2, 3);
    const calls = [];
    // 400 go out at once; the others wait for a slot, and their prompts have changed by then.
    for (let sample = 0; sample < 402; sample++) {
      tokens[0] = sample;
      calls.push(sampler.sample({ prompt: ModelInput.fromInts(tokens) }));
    }
    tokens.fill(9);
    for (const call of calls) on.clock.resolve(call);
    expect(sentTokens(on.fake.to('asample'))).toEqual(calls.map((_, sample) => [sample, 2, 3]));
  });

  it('that is changed and sampled again is not the one before', () => {
    const on = stage();
    const sampler = on.sampler();
    const tokens = Int32Array.of(1, 2, 3);
    const prompt = ModelInput.fromInts(tokens);
    on.clock.resolve(sampler.sample({ prompt }));
    on.clock.resolve(sampler.sample({ prompt }));
    tokens[2] = 7;
    on.clock.resolve(sampler.sample({ prompt }));
    on.clock.resolve(sampler.computeLogprobs(prompt));
    expect(sentTokens(on.fake.to('asample'))).toEqual([
      [1, 2, 3],
      [1, 2, 3],
      [1, 2, 7],
      [1, 2, 7],
    ]);
  });

  it('is the same when a refused sample goes out again', () => {
    let refuse = true;
    const on = stage({
      script: { asample: () => (refuse ? { status: 429, headers: {}, body: new Uint8Array() } : undefined) },
    });
    const tokens = Int32Array.of(1, 2, 3);
    const call = on.sampler().sample({ prompt: ModelInput.fromInts(tokens) });
    tokens.fill(9);
    refuse = false;
    on.clock.resolve(call);
    expect(sentTokens(on.fake.to('asample'))).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
  });

  it.each<[string, (bytes: Uint8Array) => ModelInputChunk]>([
    ['an image', (data) => ({ type: 'image', data, format: 'png' })],
    ['audio', (dmel) => ({ type: 'dmel', dmel })],
  ])('keeps the bytes of %s too', (_, chunk) => {
    const on = stage({ latencyMs: 100 });
    const sampler = on.sampler();
    const bytes = Uint8Array.of(1, 2, 3);
    const prompt = new ModelInput([chunk(bytes), { type: 'encoded_text', tokens: Int32Array.of(1) }]);
    for (let sample = 0; sample < 400; sample++) sampler.sample({ prompt: ModelInput.fromInts([1]) });
    const call = sampler.sample({ prompt });
    bytes.fill(9);
    on.clock.resolve(call);
    const base64 = Object.values(sentChunks(on.fake.to('asample')).at(-1) as object);
    expect(base64).toContain(Buffer.from([1, 2, 3]).toString('base64'));
  });
});
