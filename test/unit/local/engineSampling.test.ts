import { describe, expect, it } from 'vitest';
import { chooseToken, largest, type Choice } from '../../../src/local/engine/sampling/chooseToken.js';
import type { EngineCore } from '../../../src/local/engine/thread/core.js';
import { EngineCancelledError, EngineUserError } from '../../../src/local/engine/errors.js';
import { createRandom } from '../../../src/local/engine/numeric/random.js';
import type { SampleRequest } from '../../../src/local/engine/types.js';
import { END_TOKEN } from '../../../src/local/engine/model/vocabulary.js';
import { busyState, createCore, ints, SHAPE, someTokens, textDatum } from './engineModel.js';

const PROMPT = someTokens(9, 3);
const STATE = busyState({ rank: 3 }, 2);

function createSampling(): {
  core: EngineCore;
  sample: (request: Partial<SampleRequest>) => ReturnType<EngineCore['sample']>['result'];
} {
  const core = createCore();
  core.createSampler('s', { state: STATE });
  return {
    core,
    sample: (request) => core.sample('s', { prompt: PROMPT, maxTokens: 12, stop: [], seed: 1, ...request }).result,
  };
}

/** Logprobs of `tokens` after the first, by the training side. */
async function trainingLogprobs(core: EngineCore, tokens: Int32Array): Promise<Float32Array> {
  core.createModel('m', SHAPE.name, STATE.lora);
  core.loadState('m', STATE, false);
  const { outputs } = await core.forwardBackward('m', [textDatum(tokens)], { name: 'cross_entropy', config: {} }, true);
  return outputs[0]!['logprobs']!.data as Float32Array;
}

describe('chooseToken', () => {
  const logits = Float32Array.from([1, 3, 2, 0, 2.5]);
  const draws = 40_000;

  /** Frequencies of seeded draws. */
  function frequencies(choice: Choice): number[] {
    const random = createRandom(5);
    const counts = new Array<number>(logits.length).fill(0);
    for (let i = 0; i < draws; i++) counts[chooseToken(logits, choice, random)]!++;
    return counts.map((count) => count / draws);
  }

  function softmax(temperature: number, kept: readonly number[]): number[] {
    const weights = Array.from(logits, (value, id) => (kept.includes(id) ? Math.exp(value / temperature) : 0));
    const total = weights.reduce((a, b) => a + b, 0);
    return weights.map((weight) => weight / total);
  }

  it.each([
    ['temperature 1', { temperature: 1, topK: -1, topP: 1 }, softmax(1, [0, 1, 2, 3, 4])],
    ['temperature 2', { temperature: 2, topK: -1, topP: 1 }, softmax(2, [0, 1, 2, 3, 4])],
    ['the two most likely', { temperature: 1, topK: 2, topP: 1 }, softmax(1, [1, 4])],
    // Cumulative, most likely first: 0.48, 0.77, 0.95, 0.996, 1.
    ['the nucleus of 0.9', { temperature: 1, topK: -1, topP: 0.9 }, softmax(1, [1, 4, 2])],
    ['a nucleus smaller than the first', { temperature: 1, topK: -1, topP: 0.01 }, softmax(1, [1])],
    // Among the three most likely the first two hold 0.81 of the mass.
    ['top-k before top-p', { temperature: 1, topK: 3, topP: 0.8 }, softmax(1, [1, 4])],
    ['temperature 0', { temperature: 0, topK: -1, topP: 1 }, [0, 1, 0, 0, 0]],
  ])('draws from the distribution: %s', (_, choice, expected) => {
    frequencies(choice).forEach((frequency, id) => {
      const deviation = Math.sqrt((expected[id]! * (1 - expected[id]!)) / draws);
      expect(Math.abs(frequency - expected[id]!), `token ${id}`).toBeLessThanOrEqual(4 * deviation);
    });
  });

  it('answers with a valid token when logits are not numbers', () => {
    const token = chooseToken(new Float32Array(4).fill(NaN), { temperature: 1, topK: 2, topP: 0.5 }, createRandom(1));
    expect(token).toBe(0);
  });
});

describe('sampling', () => {
  it('gives the logprobs the training side gives, bit for bit', async () => {
    const { core, sample } = createSampling();
    const { sequences } = await sample({ maxTokens: 240 });
    const { tokens, logprobs } = sequences[0]!;
    const full = await trainingLogprobs(core, Int32Array.from([...PROMPT, ...tokens]));
    expect(logprobs).toStrictEqual(full.slice(PROMPT.length - 1));
  });

  it('does not depend on what is sampled beside it', async () => {
    const alone = await createSampling().sample({ maxTokens: 30 });
    const { sample } = createSampling();
    const others = [7, 8, 9].map((seed) =>
      sample({ seed, prompt: someTokens(seed * 5, seed), numSamples: 3, maxTokens: 50 }),
    );
    const [together] = await Promise.all([sample({ maxTokens: 30 }), ...others]);
    expect(together).toStrictEqual(alone);
  });

  it('repeats itself for a seed, differs between samples and between seeds', async () => {
    const { sample } = createSampling();
    const [first, again, other] = await Promise.all([
      sample({ numSamples: 80, temperature: 1.5 }),
      sample({ numSamples: 80, temperature: 1.5 }),
      sample({ numSamples: 80, temperature: 1.5, seed: 2 }),
    ]);
    expect(again.sequences).toStrictEqual(first.sequences);
    const texts = (result: typeof first) => result.sequences.map(({ tokens }) => tokens.join());
    expect(new Set([...texts(first), ...texts(other)]).size).toBe(160);
  });

  it('draws a fresh seed where none is given', async () => {
    const { core } = createSampling();
    const request = { prompt: PROMPT, maxTokens: 12, stop: [] };
    const [a, b] = await Promise.all([core.sample('s', request).result, core.sample('s', request).result]);
    expect(a.sequences[0]!.tokens).not.toStrictEqual(b.sequences[0]!.tokens);
  });

  it('takes the most likely token at temperature 0', async () => {
    const { sample } = createSampling();
    const { sequences } = await sample({ temperature: 0, topkSampleLogprobs: 2 });
    const { tokens, logprobs, topkLogprobs } = sequences[0]!;
    expect(Int32Array.from(tokens, (_, i) => topkLogprobs!.tokenIds[2 * i]!)).toStrictEqual(tokens);
    expect(Float32Array.from(tokens, (_, i) => topkLogprobs!.logprobs[2 * i]!)).toStrictEqual(logprobs);
    expect(topkLogprobs!.length).toBe(12);
    expect(topkLogprobs!.logprobs[1]!).toBeLessThanOrEqual(topkLogprobs!.logprobs[0]!);
  });

  it('fills the context where no maximum is given', async () => {
    const { sample } = createSampling();
    const { sequences } = await sample({ maxTokens: undefined });
    expect(sequences[0]!.tokens.length).toBe(SHAPE.context - PROMPT.length);
    expect(sequences[0]!.stopReason).toBe('length');
  });
});

describe('stop', () => {
  const random = (request: Partial<SampleRequest>) =>
    createSampling().sample({ maxTokens: 240, temperature: 3, ...request });

  it('ends at a token id, which is included', async () => {
    const free = (await random({})).sequences[0]!;
    const token = free.tokens[20]!;
    const { sequences } = await random({ stop: [token] });
    const end = free.tokens.indexOf(token);
    expect(sequences[0]!.stopReason).toBe('stop');
    expect(sequences[0]!.tokens).toStrictEqual(free.tokens.slice(0, end + 1));
    expect(sequences[0]!.logprobs).toStrictEqual(free.logprobs.slice(0, end + 1));
  });

  it('ends at a text, over several bytes and among several', async () => {
    const free = (await random({})).sequences[0]!;
    const at = free.tokens.findIndex((token, i) => i > 5 && token < 128 && free.tokens[i + 1]! < 128);
    const text = String.fromCharCode(free.tokens[at]!, free.tokens[at + 1]!);
    const { sequences } = await random({ stop: ['never sampled', text] });
    expect(sequences[0]!.tokens).toStrictEqual(free.tokens.slice(0, at + 2));
    expect(sequences[0]!.stopReason).toBe('stop');
  });

  it('lets the end token stop where nothing is said, and nothing where an empty list is', async () => {
    const { core, sample } = createSampling();
    const free = await sample({ numSamples: 40, maxTokens: 200, temperature: 3 });
    const implicit = await core.sample('s', { prompt: PROMPT, numSamples: 40, maxTokens: 200, temperature: 3, seed: 1 })
      .result;
    const ended = free.sequences.filter(({ tokens }) => tokens.includes(END_TOKEN));
    expect(ended.length).toBeGreaterThan(5);
    expect(free.sequences.every(({ tokens, stopReason }) => tokens.length === 200 && stopReason === 'length')).toBe(
      true,
    );
    implicit.sequences.forEach(({ tokens, stopReason }, index) => {
      const whole = free.sequences[index]!.tokens;
      const end = whole.indexOf(END_TOKEN);
      expect(tokens).toStrictEqual(end < 0 ? whole : whole.slice(0, end + 1));
      expect(stopReason).toBe(end < 0 ? 'length' : 'stop');
    });
  });
});

describe('the prompt', () => {
  it('is scored with logprobs, top-k, chosen targets and alternatives', async () => {
    const { core, sample } = createSampling();
    const ids = someTokens(16, 8);
    ids[3] = -1;
    const scored = await sample({
      maxTokens: 1,
      promptLogprobs: true,
      topkPromptLogprobs: 3,
      targetPromptLogprobs: ints(ids, [8, 2]),
      promptAltTokensK: 200,
    });
    const expected = await trainingLogprobs(core, PROMPT);
    expect(scored.promptLogprobs).toStrictEqual(Float32Array.from([NaN, ...expected]));
    const topk = scored.topkPromptLogprobs!;
    expect([topk.length, topk.k]).toEqual([9, 3]);
    expect([...topk.tokenIds.slice(0, 3), ...topk.logprobs.slice(0, 3)]).toEqual([0, 0, 0, -99999, -99999, -99999]);

    // The same numbers asked of the training side, every token of the vocabulary at once.
    core.createModel('all', SHAPE.name, STATE.lora);
    core.loadState('all', STATE, false);
    const every = Array.from({ length: 8 * 264 }, (_, i) => i % 264);
    const inputs = {
      target_tokens: ints(every, [8, 264]),
      weights: { ...ints(every, [8, 264]), dtype: 'float32' as const },
    };
    const { outputs } = await core.forwardBackward(
      'all',
      [{ tokens: PROMPT.slice(0, 8), inputs }],
      { name: 'cross_entropy', config: {} },
      true,
    );
    const table = outputs[0]!['logprobs']!.data;
    const at = (row: number, token: number) => table[row * 264 + token]!;
    expect(Array.from(topk.tokenIds.slice(3), (id, i) => at(Math.floor(i / 3), id))).toEqual([
      ...topk.logprobs.slice(3),
    ]);
    for (let row = 0; row < 8; row++) {
      const sorted = [...table.slice(row * 264, (row + 1) * 264)].sort((a, b) => b - a);
      expect([...topk.logprobs.slice(3 * row + 3, 3 * row + 6)]).toEqual(sorted.slice(0, 3));
    }
    expect(scored.targetPromptLogprobs!.shape).toEqual([8, 2]);
    expect([...scored.targetPromptLogprobs!.data]).toEqual(
      Array.from(ids, (id, i) => (id < 0 ? 0 : at(Math.floor(i / 2), id))),
    );

    const { tokens, logprobs } = scored.promptAltTokens!;
    expect(tokens.shape).toEqual([8, 200]);
    expect([...logprobs.data]).toEqual(Array.from(tokens.data, (id, i) => at(Math.floor(i / 200), id)));
    // The mean logprob of draws is minus the entropy.
    const mean = Array.from(logprobs.data).reduce((sum, value) => sum + value, 0) / logprobs.data.length;
    let entropy = 0;
    for (let i = 0; i < table.length; i++) entropy -= (Math.exp(table[i]!) * table[i]!) / 8;
    expect(Math.abs(mean + entropy)).toBeLessThan(0.1);
  });

  it('scores only the last n, and CSR targets in their own layout', async () => {
    const { sample } = createSampling();
    const all = await sample({ promptLogprobs: true, targetPromptLogprobs: ints([...PROMPT.slice(1)], [8, 1]) });
    const some = await sample({
      promptLogprobs: true,
      promptLogprobsLastN: 2,
      topkPromptLogprobs: 1,
      targetPromptLogprobs: {
        ...ints([PROMPT[3]!, PROMPT[8]!], [8, 1]),
        sparse: { crowIndices: Int32Array.of(0, 0, 0, 1, 1, 1, 1, 1, 2), colIndices: Int32Array.of(0, 0) },
      },
    });
    expect(some.promptLogprobs).toStrictEqual(all.promptLogprobs!.map((value, i) => (i < 7 ? NaN : value)));
    expect([...some.topkPromptLogprobs!.logprobs].map((value) => value === -99999)).toEqual([
      ...Array<boolean>(7).fill(true),
      false,
      false,
    ]);
    expect([...some.targetPromptLogprobs!.data]).toEqual([all.promptLogprobs![3], all.promptLogprobs![8]]);
    expect(some.targetPromptLogprobs!.sparse!.crowIndices.length).toBe(9);
    expect([...all.targetPromptLogprobs!.data]).toEqual([...all.promptLogprobs!.slice(1)]);
    expect(some.sequences).toStrictEqual(all.sequences);
  });
});

describe('a wrong request', () => {
  it.each<[string, Partial<SampleRequest>]>([
    ['prompt is empty', { prompt: new Int32Array(0) }],
    ['prompt has 264 at 1', { prompt: Int32Array.of(1, 264) }],
    ['prompt has 257 tokens, more than the context of 256', { prompt: new Int32Array(257) }],
    ['num_samples', { numSamples: 0 }],
    ['max_tokens', { maxTokens: 0 }],
    ['temperature', { temperature: -1 }],
    ['top_k', { topK: -2 }],
    ['top_p', { topP: 0 }],
    ['stop string', { stop: [''] }],
    ['stop token 264', { stop: [264] }],
    ['prompt_logprobs_last_n needs', { promptLogprobsLastN: 2 }],
    ['prompt_logprobs_last_n must be', { promptLogprobs: true, promptLogprobsLastN: 9 }],
    ['target_prompt_logprobs has shape [9, 1], expected [8, K]', { targetPromptLogprobs: ints(PROMPT, [9, 1]) }],
    ['target_prompt_logprobs names no token', { targetPromptLogprobs: ints(new Int32Array(8).fill(-1), [8, 1]) }],
  ])('is refused: %s', (message, request) => {
    const { core } = createSampling();
    const call = () => core.sample('s', { prompt: PROMPT, ...request });
    expect(call).toThrow(EngineUserError);
    expect(call).toThrow(message);
  });
});

describe('cancel', () => {
  it('ends what waits and what runs, frees its memory, and leaves others alone', async () => {
    const { core, sample } = createSampling();
    await sample({ numSamples: 64, maxTokens: 247 });
    const before = core.heap.bytes;
    for (let round = 0; round < 5; round++) {
      const running = core.sample('s', { prompt: PROMPT, numSamples: 64, stop: [] });
      const waiting = core.sample('s', { prompt: PROMPT, numSamples: 64, stop: [] });
      const beside = sample({});
      const ends = [running, waiting].map(({ result }) => expect(result).rejects.toThrow(EngineCancelledError));
      setTimeout(() => [running, waiting].forEach(({ cancel }) => cancel()), 5);
      await Promise.all(ends);
      expect((await beside).sequences[0]!.tokens.length).toBe(12);
    }
    expect(core.heap.bytes).toBe(before);
  });
});

describe('largest', () => {
  it('gives what sorting all of them would, ties by id, for every k', () => {
    const random = createRandom(4);
    for (let round = 0; round < 60; round++) {
      const size = Math.floor(random.uniform() * 40);
      // Few different values, so that many are equal.
      const values = Float32Array.from({ length: size }, () => Math.floor(random.uniform() * 8) - 4);
      const sorted = Array.from(values, (_, id) => id).sort((a, b) => values[b]! - values[a]! || a - b);
      for (let k = 0; k <= size + 1; k++) expect([...largest(values, k)]).toEqual(sorted.slice(0, k));
    }
  });

  it('leaves the draw within top-k and top-p as it was when all of it was sorted', () => {
    const random = createRandom(9);
    for (let round = 0; round < 200; round++) {
      const logits = Float32Array.from({ length: 264 }, () => 3 * random.normal());
      const choice = { temperature: 0.9, topK: round % 3 === 0 ? 7 : -1, topP: 0.2 + 0.75 * random.uniform() };
      const weights = Array.from(logits, (logit) => Math.exp((logit - Math.max(...logits)) / choice.temperature));
      const order = weights.map((_, id) => id).sort((a, b) => weights[b]! - weights[a]! || a - b);
      const candidates = order.slice(0, choice.topK > 0 ? choice.topK : 264);
      const sum = candidates.reduce((total, id) => total + weights[id]!, 0);
      let total = 0;
      const kept = candidates.filter((id) => {
        if (total > 0 && total >= choice.topP * sum) return false;
        total += weights[id]!;
        return true;
      });
      let left = createRandom(round).uniform() * total;
      const expected = kept.sort((a, b) => a - b).find((id) => (left -= weights[id]!) < 0);
      expect(chooseToken(logits, choice, createRandom(round))).toBe(expected);
    }
  });
});
