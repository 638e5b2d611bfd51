import { from, lastValueFrom, map, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type SupervisedRenderer } from '../../src/operators/data/toDatums.js';
import { toPairs } from '../../src/operators/data/toPairs.js';
import { ModelInput } from '../../src/wire/modelInput.js';
import type { TensorData } from '../../src/wire/tensor.js';
import { keepsContract, throwing } from './contract.js';
import { marbles } from './marbles.js';

interface Message {
  readonly role: string;
  readonly content: string;
}

/** One token a character; the last message is trained on. A message of two turns makes an example for each. */
const renderer: SupervisedRenderer<Message, string> = {
  buildSupervisedExamples: (messages) => {
    const answers = messages.filter(({ role }) => role === 'assistant');
    return answers.map((_, index) => {
      const upTo = messages.slice(0, messages.indexOf(answers[index]!) + 1);
      const tokens = upTo.flatMap(({ content }) => Array.from(content, (char) => char.charCodeAt(0)));
      const from_ = tokens.length - upTo.at(-1)!.content.length;
      return { modelInput: ModelInput.fromInts(tokens), weights: tokens.map((_, at) => (at >= from_ ? 1 : 0)) };
    });
  },
};
const row = (prompt: string, chosen: string, rejected: string) => ({ prompt, chosen, rejected });
const pairsOf = (rows: readonly unknown[], options = {}) =>
  lastValueFrom(from(rows).pipe(toPairs(renderer, options), toArray()));

describe('toPairs', () => {
  keepsContract({
    operator: () => (source) =>
      source.pipe(
        map(() => row('ab', 'c', 'd')),
        toPairs(renderer),
        map(([chosen]) => chosen.modelInput.length),
      ),
    readsForThree: 3,
    throwing: () => (source) =>
      source.pipe(
        map(() => row('ab', 'c', 'd')),
        toPairs({ buildSupervisedExamples: throwing }),
      ),
  });

  it(
    'gives each preference its two datums, in order and at once',
    marbles((m) => {
      const source = m.cold('  -a---b---|', { a: row('p', 'qr', 's'), b: row('pp', 'q', 'rst') });
      const subs = '           ^--------!';
      const expected = '       -x---y---|';
      const lengths = source.pipe(
        toPairs(renderer),
        map(([chosen, rejected]) => `${chosen.modelInput.length} ${rejected.modelInput.length}`),
      );
      m.expect(lengths).toBeObservable(expected, { x: '2 1', y: '2 4' });
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it('weighs the last answer 1 and the rest 0, also where there are several answers', async () => {
    const messages = [
      { role: 'user', content: 'ab' },
      { role: 'assistant', content: 'cd' },
      { role: 'user', content: 'e' },
    ];
    const [pair] = await pairsOf([{ messages, chosen: 'fg', rejected: 'hij' }]);
    const weights = pair!.map(({ lossFnInputs }) => [...(lossFnInputs['weights'] as TensorData).data]);
    expect(weights).toEqual([
      [0, 0, 0, 0, 1, 1],
      [0, 0, 0, 0, 1, 1, 1],
    ]);
  });

  it('declares the tools of a row on both sides, and refuses them where the renderer cannot', async () => {
    const tools = [{ name: 'weather', description: '', parameters: {} }];
    const declares: SupervisedRenderer<Message, string> = {
      ...renderer,
      declareTools: (declared) => declared.map(({ name }) => ({ role: 'system', content: name })),
    };
    const given = { ...row('ab', 'c', 'd'), tools };
    const [pair] = await lastValueFrom(from([given]).pipe(toPairs(declares), toArray()));
    const texts = pair!.map(({ modelInput }) => String.fromCharCode(...modelInput.toInts()));
    expect(texts).toEqual(['weatherab', 'weatherab']);
    await expect(pairsOf([given])).rejects.toThrow('the renderer has no way to declare any');
  });

  it('cuts to length, and refuses a pair of which no answer is left, naming it', async () => {
    const [pair] = await pairsOf([row('ab', 'cdef', 'gh')], { maxLength: 4 });
    expect(pair![0].modelInput.length).toBe(3);
    await expect(pairsOf([row('a', 'b', 'c'), row('abcd', 'e', 'f')], { maxLength: 4 })).rejects.toThrow(
      'pair 1: nothing of the chosen answer is left within 4 tokens',
    );
    expect(() => toPairs(renderer, { maxLength: 1 })).toThrow(RangeError);
  });

  it('refuses a row that is no preference, naming its place', async () => {
    await expect(pairsOf([row('a', 'b', 'c'), { prompt: 'a' }])).rejects.toThrow(
      'pair 1: expected chosen and rejected',
    );
  });
});
