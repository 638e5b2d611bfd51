// Reinforcement learning: groups of answers, a reward for the one right word, advantages within the group.
import { lastValueFrom, map, toArray } from 'rxjs';
import { datumFromSequence } from 'tinker-rx/chat';
import { sampleFrom } from 'tinker-rx/operators';
import { fromJsonl } from 'tinker-rx/sources';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const renderer = await trainer.getRenderer();
const facts = fromJsonl<{ question: string; answer: string }>(new URL('./data/facts.jsonl', import.meta.url).pathname);
const samplingParams = { maxTokens: 32, stop: renderer.getStopSequences() };

let reward = 0;
for (let round = 1; reward < 0.85; round++) {
  const sampler = await trainer.saveWeightsAndGetSamplingClient();
  const groups = await lastValueFrom(
    facts.pipe(
      map(({ question, answer }, index) => ({
        prompt: renderer.buildGenerationPrompt([{ role: 'user', content: question }]),
        answer,
        seed: 1000 * round + index,
      })),
      sampleFrom(sampler, {
        request: ({ prompt, seed }) => ({ prompt, numSamples: 16, samplingParams: { ...samplingParams, seed } }),
      }),
      map(({ item: { prompt, answer }, response: { sequences } }) => {
        const rewards = sequences.map(({ tokens }) => (renderer.parse(tokens).message.content === answer ? 1 : 0));
        const mean = rewards.reduce((sum: number, one) => sum + one, 0) / rewards.length;
        // A group whose answers are all alike teaches nothing: its advantages are zero.
        const advantage = (i: number) => ({ advantage: rewards[i]! - mean });
        return { mean, data: sequences.map((sequence, i) => datumFromSequence(prompt, sequence, advantage(i))) };
      }),
      toArray(),
    ),
  );
  reward = groups.reduce((sum, { mean }) => sum + mean, 0) / groups.length;
  console.log(`round ${round}: mean reward ${reward.toFixed(2)}`);
  const data = groups.flatMap((group) => group.data);
  const pass = trainer.forwardBackward(data, 'importance_sampling');
  await trainer.optimStep({ learningRate: 3e-3 });
  await pass;
}
await close();
