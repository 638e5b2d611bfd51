// Reinforcement learning: groups of answers, a reward for the one right word, advantages within the group.
import { takeWhile } from 'rxjs';
import { repeatEpochs } from 'tinker-rx/operators';
import { reinforce, singleTurn } from 'tinker-rx/rl';
import { fromJsonl } from 'tinker-rx/sources';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const agent = singleTurn({
  renderer: await trainer.getRenderer(),
  prompt: (fact: { question: string; answer: string }) => fact.question,
  reward: ({ text }, { answer }) => (text === answer ? 1 : 0),
  samplingParams: { maxTokens: 32 },
});
const facts = fromJsonl<{ question: string; answer: string }>(new URL('./data/facts.jsonl', import.meta.url).pathname);
const learning = reinforce(trainer, agent, { group: 16, groupsPerBatch: 16, adam: { learningRate: 3e-3 } });
const until = takeWhile<{ reward: number; index: number }>(({ reward }) => reward < 0.85, true);
await facts.pipe(repeatEpochs(), learning, until).forEach(({ index, reward }) => {
  console.log(`step ${index + 1}: mean reward ${reward.toFixed(2)}`);
});
await close();
