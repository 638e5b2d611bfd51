import { describe, expect, it } from 'vitest';
import { TensorData, type SampleResponse } from 'tinker-rx';
import { json } from 'tinker-rx/testing';
import { prompt, stage } from './stage.js';

const response = (fields: Partial<SampleResponse>): SampleResponse => ({
  sequences: [{ stopReason: 'stop', tokens: Int32Array.of(1) }],
  promptCacheHitTokens: 0,
  ...fields,
});
const answering = (fields: Partial<SampleResponse>) => stage({ sample: () => response(fields) });

describe('what a sample brings', () => {
  it('is given its place when a server leaves out the first prompt token', () => {
    const on = answering({ promptLogprobs: Float32Array.of(-1, -2) });
    expect(on.clock.resolve(on.sampler().computeLogprobs(prompt(3)))).toStrictEqual(Float32Array.of(NaN, -1, -2));
  });

  it('is left alone when it has its place', () => {
    const on = answering({ promptLogprobs: Float32Array.of(NaN, -1, -2) });
    expect(on.clock.resolve(on.sampler().computeLogprobs(prompt(3)))).toStrictEqual(Float32Array.of(NaN, -1, -2));
  });

  it('is an error when it lacks the logprobs that were asked for', () => {
    const on = answering({});
    expect(on.clock.reject(on.sampler().computeLogprobs(prompt(3)))).toMatchObject({ code: 'invalid_response' });
  });

  it('is an error when an old server ignored promptAltTokensK', () => {
    const on = answering({});
    const error = on.clock.reject(on.sampler().sample({ prompt: prompt(3), promptAltTokensK: 2 }));
    expect(error).toMatchObject({ code: 'invalid_response' });
    expect((error as Error).message).toContain('promptAltTokensK');
  });

  it('is an error when an old server ignored promptLogprobsLastN', () => {
    const on = answering({ promptLogprobs: Float32Array.of(NaN, -1, -2) });
    const error = on.clock.reject(on.sampler().computeLogprobs(prompt(3), { lastN: 1 }));
    expect((error as Error).message).toContain('promptLogprobsLastN');
  });

  it('is fine when the server did as it was asked', () => {
    const promptAltTokens = { tokens: TensorData.from([[1], [2]]), logprobs: TensorData.from([[-1], [-2]], 'float32') };
    const on = answering({ promptLogprobs: Float32Array.of(NaN, NaN, -2), promptAltTokens });
    const options = { prompt: prompt(3), includePromptLogprobs: true, promptLogprobsLastN: 1, promptAltTokensK: 1 };
    expect(on.clock.resolve(on.sampler().sample(options)).promptAltTokens).toStrictEqual(promptAltTokens);
  });

  it('is an error when it has other sequences than were promised', () => {
    const on = stage({
      script: {
        asample: [json({ request_id: 'session-1:sample:0:0', sample_sequence_ids: ['a', 'b'] })],
        retrieve_future: json({ sequences: [] }),
      },
    });
    expect(on.clock.reject(on.sampler().sample({ prompt: prompt() }))).toMatchObject({
      code: 'invalid_response',
      message: '2 sequence ids for 0 sequences',
      requestId: 'session-1:sample:0:0',
    });
  });

  it.each([
    ['topkSampleLogprobs', { topkSampleLogprobs: 2 }],
    ['topkPromptLogprobs', { topkPromptLogprobs: 2 }],
    ['targetPromptLogprobs', { targetPromptLogprobs: [[1], [2]] }],
  ])('is as it is when a server ignored %s, and an event says so', (option, asked) => {
    const on = answering({});
    const { sequences } = on.clock.resolve(on.sampler().sample({ prompt: prompt(3), ...asked }));
    expect(sequences).toHaveLength(1);
    expect(on.eventsOf('option-ignored')).toMatchObject([{ option, target: 'session-1:sample:0' }]);
  });

  it('misses nothing that has no place: no tokens, or a prompt of one', () => {
    const on = answering({ sequences: [{ stopReason: 'stop', tokens: new Int32Array() }] });
    const asked = { prompt: prompt(1), topkSampleLogprobs: 2, topkPromptLogprobs: 2 };
    on.clock.resolve(on.sampler().sample(asked));
    expect(on.eventsOf('option-ignored')).toEqual([]);
  });

  it('has no sequence ids where the server gives none', () => {
    const on = stage({
      script: {
        asample: [json({ request_id: 'r' })],
        retrieve_future: json({ sequences: [{ stop_reason: 'stop', tokens: [1] }] }),
      },
    });
    expect(on.clock.resolve(on.sampler().sample({ prompt: prompt() })).sequences[0]).not.toHaveProperty('sequenceId');
  });
});

describe('what a sample asks for', () => {
  it('is a list of stops, none at all, or an empty one: three different things', () => {
    const on = stage();
    const sampler = on.sampler();
    for (const stop of ['END', ['a', 'b'], [7], [], undefined])
      on.clock.resolve(sampler.sample({ prompt: prompt(), samplingParams: { stop } }));
    const stops = on.fake
      .to('asample')
      .map(({ json: body }) => (body['sampling_params'] as Record<string, unknown>)['stop']);
    expect(stops).toEqual([['END'], ['a', 'b'], [7], [], undefined]);
    expect(on.fake.to('asample').at(-1)!.body).not.toContain('stop');
  });
});
