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
  it('learns twenty answers to under 0.1 nats a token in under 60 s', { timeout: 120_000 }, async () => {
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
    const begun = performance.now();
    const losses: number[] = [];
    do {
      const { metrics } = await engine.forwardBackward('sft', data, 'cross_entropy');
      await engine.optimStep('sft', { learningRate: 0.01 });
      losses.push(metrics['loss:sum']! / tokens);
    } while (losses.at(-1)! > 0.1 && losses.length < 300);
    const seconds = (performance.now() - begun) / 1000;
    console.log(
      `supervised: ${losses[0]!.toFixed(2)} to ${losses.at(-1)!.toFixed(3)} nats a token in ${losses.length} steps, ${seconds.toFixed(1)} s`,
    );
    expect(losses.at(-1)).toBeLessThan(0.1);
    expect(seconds).toBeLessThan(60);
    await engine.createSampler({ samplerId: 'sft', modelId: 'sft' });
    const { sequences } = await engine.sample('sft', {
      prompt: promptOf('Who wrote Hamlet?'),
      maxTokens: 40,
      temperature: 0,
    });
    expect(decodeTokens(sequences[0]!.tokens)).toBe('William Shakespeare');
  });
});

describe('reinforcement', () => {
  it(
    'learns to answer sums by the number alone, from a reward under 0.2 to over 0.8, in under two minutes',
    { timeout: 240_000 },
    async () => {
      await engine.createModel({ modelId: 'rl', baseModel: TINY, lora: { rank: 16 } });
      const [groups, size] = [8, 16];
      const rewards: number[] = [];
      const begun = performance.now();
      for (let step = 0; step < 60; step++) {
        const samplerId = `rl-${step}`;
        await engine.createSampler({ samplerId, modelId: 'rl' });
        const results = await Promise.all(
          Array.from({ length: groups }, async (_, group) => {
            // A walk through all hundred sums, every step on other ones.
            const index = (37 * (step * groups + group)) % 100;
            const [a, b] = [index % 10, Math.floor(index / 10)];
            const prompt = promptOf(`What is ${a} + ${b}?`);
            const { sequences } = await engine.sample(samplerId, {
              prompt,
              numSamples: size,
              maxTokens: 32,
              seed: step * groups + group,
            });
            const scores = sequences.map(({ tokens }) =>
              decodeTokens(tokens) === String(a + b) && tokens.at(-1) === END_TOKEN ? 1 : 0,
            );
            const mean = scores.reduce((sum: number, score) => sum + score, 0) / size;
            const data = sequences.map(({ tokens, logprobs }, i) =>
              datumOf(prompt, tokens, {
                logprobs,
                advantages: new Float32Array(tokens.length).fill(scores[i]! - mean),
              }),
            );
            return { mean, data: data.filter((_datum, i) => scores[i] !== mean) };
          }),
        );
        await engine.disposeSampler(samplerId);
        rewards.push(results.reduce((sum, { mean }) => sum + mean, 0) / groups);
        if (rewards.length > 5 && rewards.slice(-5).every((reward) => reward > 0.8)) break;
        const data = results.flatMap((result) => result.data);
        if (data.length > 0) await engine.forwardBackward('rl', data, 'importance_sampling');
        await engine.optimStep('rl', { learningRate: 0.004 });
      }
      const seconds = (performance.now() - begun) / 1000;
      console.log(`reinforcement: ${rewards.map((reward) => reward.toFixed(2)).join(' ')} in ${seconds.toFixed(1)} s`);
      expect(rewards[0]).toBeLessThan(0.2);
      expect(Math.min(...rewards.slice(-5))).toBeGreaterThan(0.8);
      expect(seconds).toBeLessThan(120);
    },
  );
});
