// Reinforcement learning: groups of answers, a reward for the one right word, advantages within the group.
import { repeatEpochs } from 'tinker-rx/operators';
import { reinforce, singleTurn } from 'tinker-rx/rl';
import { fromJsonl } from 'tinker-rx/sources';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const prompt = ({ question }: { question: string; answer: string }) => question;
const reward = ({ text }: { text: string }, { answer }: { answer: string }) => (text === answer ? 1 : 0);
const agent = singleTurn({ renderer: await trainer.getRenderer(), prompt, reward, samplingParams: { maxTokens: 32 } });
const learning = reinforce(trainer, agent, { group: 16, groupsPerBatch: 16, adam: { learningRate: 3e-3 } });
const facts = fromJsonl<Parameters<typeof prompt>[0]>(new URL('./data/facts.jsonl', import.meta.url).pathname);
await facts.pipe(repeatEpochs({ epochs: 7 }), learning).forEach((step) => {
  console.log(`step ${step.index + 1}: mean reward ${step.reward.toFixed(2)}`);
});
await close();
