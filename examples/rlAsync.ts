// Asynchronous reinforcement learning: sampling runs up to two steps ahead of training, and says how old its weights were.
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
const learning = reinforce(trainer, agent, {
  group: 16,
  groupsPerBatch: 16,
  maxStepsOffPolicy: 2,
  loss: 'ppo',
  adam: { learningRate: 2e-3 },
});
await facts.pipe(repeatEpochs({ epochs: 12 }), learning).forEach(({ index, reward, metrics }) => {
  console.log(`step ${index + 1}: mean reward ${reward.toFixed(2)}, weights ${metrics['policy/age_max']} steps old`);
});
await close();
