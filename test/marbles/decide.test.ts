import { lastValueFrom, map, NEVER, of, throwError, timer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ByteTokenizer, getRenderer } from '../../src/chat/index.js';
import type { SampleOptions } from '../../src/client/SamplingClient.js';
import { decide } from '../../src/operators/sampling/decide.js';
import type { SampleResponse } from '../../src/wire/sampling.js';
import { TensorData } from '../../src/wire/tensor.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

const renderer = getRenderer('tinker_rx_bytes', new ByteTokenizer());
const labels = ['yes', 'no'];

/** Thinks that every answer is `yes` with 0.3, `no` with 0.1. */
const answer = ({ targetPromptLogprobs }: SampleOptions): SampleResponse => {
  const { shape, sparse } = targetPromptLogprobs as TensorData;
  const data = Float32Array.from([Math.log(0.3), Math.log(0.1)]);
  const scores = new TensorData({ dtype: 'float32', data, shape, sparse: sparse! });
  return { sequences: [], promptCacheHitTokens: 0, targetPromptLogprobs: scores };
};
const sampler = { sample: (options: SampleOptions) => of(answer(options)) };

describe('decide', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map(() => 'Is it?'),
        decide(sampler, { renderer, labels }),
        map(({ label }) => label),
      ),
    readsForThree: 3,
    throwing: () => (source) =>
      source.pipe(
        map(() => 'Is it?'),
        decide({ sample: throwing }, { renderer, labels }),
      ),
  });

  it('scores all labels at the position of the answer, in one request', async () => {
    const asked: SampleOptions[] = [];
    const watched = { sample: (options: SampleOptions) => (asked.push(options), of(answer(options))) };
    const decision = await lastValueFrom(of('Is it?').pipe(decide(watched, { renderer, labels, system: 'Say.' })));
    expect(asked).toHaveLength(1);
    const [{ prompt, targetPromptLogprobs, samplingParams }] = asked as [SampleOptions];
    const messages = [
      { role: 'system', content: 'Say.' },
      { role: 'user', content: 'Is it?' },
    ] as const;
    const before = [...renderer.buildGenerationPrompt(messages).toInts()];
    expect([...prompt.toInts()].slice(0, -1)).toStrictEqual(before);
    const rows = (targetPromptLogprobs as TensorData).toDense(-1).toArray() as number[][];
    expect(rows).toHaveLength(before.length);
    expect(rows.at(-1)).toStrictEqual([...'yn'].map((letter) => letter.charCodeAt(0)));
    expect(
      rows
        .slice(0, -1)
        .flat()
        .every((id) => id === -1),
    ).toBe(true);
    expect(samplingParams).toStrictEqual({ maxTokens: 1 });
    expect(decision).toMatchObject({ item: 'Is it?', label: 'yes', promptTokens: before.length + 1 });
    expect(decision.confidence).toBeCloseTo(0.75, 6);
    expect(decision.probabilities['no']).toBeCloseTo(0.25, 6);
    expect(decision.mass).toBeCloseTo(0.4, 6);
  });

  it(
    'emits decisions as they come',
    marbles((m) => {
      const slow = {
        sample: (options: SampleOptions) => timer(options.prompt.length).pipe(map(() => answer(options))),
      };
      const source = m.cold('  (ab|)', { a: 'long', b: '' });
      const expected = '       ----b---(a|)';
      const result = source.pipe(
        decide(slow, { renderer, labels }),
        map(({ item }) => item),
      );
      m.expect(result).toBeObservable(expected, { a: 'long', b: '' });
    }),
  );

  it(
    'ends with an error of the service',
    marbles((m) => {
      const failing = { sample: () => throwError(() => new Error('gone')) };
      const source = m.cold('  -a-|');
      const subs = '           ^!';
      const expected = '       -#';
      m.expect(source.pipe(decide(failing, { renderer, labels }))).toBeObservable(expected, {}, new Error('gone'));
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it('cancels what it asked for when unsubscribed', () => {
    let cancelled = 0;
    const asked = { sample: () => Object.assign(NEVER, { cancel: () => cancelled++ }) };
    of('a', 'b').pipe(decide(asked, { renderer, labels })).subscribe().unsubscribe();
    expect(cancelled).toBe(2);
  });

  it('refuses labels that cannot be told apart, rows that ask nothing and services without scores', async () => {
    const decides = (wanted: readonly string[]) => () => decide(sampler, { renderer, labels: wanted });
    expect(decides(['yes'])).toThrow('at least two labels, got 1');
    expect(decides(['yes', 'yellow'])).toThrow("'yes' and 'yellow' start with the same token");
    expect(decides(['yes', ''])).toThrow("cannot write the label ''");
    const of1 = (row: unknown, from = sampler) => lastValueFrom(of(row).pipe(decide(from, { renderer, labels })));
    await expect(of1({ id: 1 })).rejects.toThrow('none of messages, prompt, question, input and text, but id');
    const none = { sample: () => of({ sequences: [], promptCacheHitTokens: 0 }) };
    await expect(of1('a', none)).rejects.toThrow('no logprobs of the labels');
  });
});
