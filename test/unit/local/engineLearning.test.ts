/** That the embedded models learn: the promises of the documentation, with room for a slow machine. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  decodeTokens,
  encodeText,
  END_TOKEN,
  Engine,
  SPECIAL,
  type EngineDatum,
} from '../../../src/local/engine/index.js';
import { floats, ints } from './engineModel.js';

const TINY = 'tinker-rx/tiny';
let engine: Engine;
beforeAll(async () => {
  engine = await Engine.start();
});
afterAll(() => engine.close());

const promptOf = (question: string) =>
  Int32Array.from([SPECIAL.user, ...encodeText(question), SPECIAL.end, SPECIAL.assistant]);

/** Prompt and completion as inputs shifted by one; `perToken` gives the tensors of the completion, zero elsewhere. */
function datumOf(
  prompt: Int32Array,
  completion: Int32Array,
  perToken: Readonly<Record<string, ArrayLike<number>>>,
): EngineDatum {
  const all = Int32Array.from([...prompt, ...completion]);
  const padded = (values: ArrayLike<number>) =>
    floats([...new Array<number>(prompt.length - 1).fill(0), ...Array.from(values)]);
  return {
    tokens: all.slice(0, -1),
    inputs: {
      target_tokens: ints(all.slice(1)),
      ...Object.fromEntries(Object.entries(perToken).map(([name, values]) => [name, padded(values)])),
    },
  };
}

describe('supervised', () => {
  it('learns twenty answers to under 0.1 nats per token in under 60 s', async () => {
    const file = readFileSync(new URL('../../../examples/data/questions.jsonl', import.meta.url), 'utf8');
    const rows = file
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { messages: { content: string }[] });
    expect(rows.length).toBe(20);
    let tokens = 0;
    const data = rows.map(({ messages: [question, answer] }) => {
      const completion = Int32Array.from([...encodeText(answer!.content), END_TOKEN]);
      tokens += completion.length;
      return datumOf(promptOf(question!.content), completion, { weights: new Float32Array(completion.length).fill(1) });
    });
    await engine.createModel({ modelId: 'sft', baseModel: TINY, lora: { rank: 16 } });
    const losses: number[] = [];
    do {
      const { metrics } = await engine.forwardBackward('sft', data, 'cross_entropy');
      await engine.optimStep('sft', { learningRate: 0.01 });
      losses.push(metrics['loss:sum']! / tokens);
    } while (losses.at(-1)! > 0.1 && losses.length < 300);
    expect(losses.at(-1)).toBeLessThan(0.1);
    await engine.createSampler({ samplerId: 'sft', modelId: 'sft' });
    const { sequences } = await engine.sample('sft', {
      prompt: promptOf('Who wrote Hamlet?'),
      maxTokens: 40,
      temperature: 0,
    });
    expect(decodeTokens(sequences[0]!.tokens)).toBe('William Shakespeare');
  });
});

/** Questions the base model answers in a sentence; the reward is for the one word asked for, and nothing else. */
const FACTS: readonly (readonly [string, string])[] = [
  ['What color is the sky?', 'blue'],
  ['What color is grass?', 'green'],
  ['What color is snow?', 'white'],
  ['What color is a lemon?', 'yellow'],
  ['What does the cow say?', 'moo'],
  ['What does the duck say?', 'quack'],
  ['What does the frog say?', 'croak'],
  ['What does the lion say?', 'roar'],
  ['What is the opposite of big?', 'small'],
  ['What is the opposite of hot?', 'cold'],
  ['What is the opposite of night?', 'day'],
  ['What is the opposite of loud?', 'quiet'],
  ['Which day comes after Monday?', 'Tuesday'],
  ['Which day comes before Monday?', 'Sunday'],
  ['Which day comes after Friday?', 'Saturday'],
  ['Which day comes before Thursday?', 'Wednesday'],
];

describe('reinforcement', () => {
  const GROUP = 16;

  /** Samples an answer group to each question; the mean reward, and what can be learned from where answers differ. */
  async function roll(samplerId: string, round: number): Promise<{ reward: number; data: EngineDatum[] }> {
    const groups = FACTS.map(async ([question, answer], index) => {
      const prompt = promptOf(question);
      const seed = round * FACTS.length + index;
      const { sequences } = await engine.sample(samplerId, { prompt, numSamples: GROUP, maxTokens: 32, seed });
      const rewards = sequences.map(({ tokens }) =>
        decodeTokens(tokens) === answer && tokens.at(-1) === END_TOKEN ? 1 : 0,
      );
      const mean = rewards.reduce((sum: number, reward) => sum + reward, 0) / GROUP;
      const data = sequences.map(({ tokens, logprobs }, i) =>
        datumOf(prompt, tokens, { logprobs, advantages: new Float32Array(tokens.length).fill(rewards[i]! - mean) }),
      );
      return { mean, data: data.filter((_, i) => rewards[i] !== mean) };
    });
    const done = await Promise.all(groups);
    return {
      reward: done.reduce((sum, { mean }) => sum + mean, 0) / FACTS.length,
      data: done.flatMap(({ data }) => data),
    };
  }

  it(
    'learns to answer in one word: reward from under 0.2 to over 0.8 in at most 40 rounds',
    { timeout: 240_000 },
    async () => {
      await engine.createModel({ modelId: 'rl', baseModel: TINY, lora: { rank: 16 } });
      const rewards: number[] = [];
      for (let round = 0; round < 40; round++) {
        const samplerId = `rl-${round}`;
        await engine.createSampler({ samplerId, modelId: 'rl' });
        const { reward, data } = await roll(samplerId, round);
        await engine.disposeSampler(samplerId);
        rewards.push(reward);
        if (reward > 0.85) break;
        await engine.forwardBackward('rl', data, 'importance_sampling');
        await engine.optimStep('rl', { learningRate: 0.003 });
      }
      expect(rewards[0]).toBeLessThan(0.2);
      expect(rewards.at(-1)).toBeGreaterThan(0.8);
    },
  );
});
