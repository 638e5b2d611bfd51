// No reward function: another model says which of two answers is kinder, and the one that trains learns to be kind.
import { lastValueFrom } from 'rxjs';
import type { TrainingClient } from 'tinker-rx';
import { batch, repeatEpochs, toDatums, train } from 'tinker-rx/operators';
import { comparison, pairwise, reinforce, singleTurn } from 'tinker-rx/rl';
import { fromArray, fromConversations } from 'tinker-rx/sources';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const model = () => service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const [trainer, judge] = await Promise.all([model(), model()]);
const renderer = await trainer.getRenderer();
const show = (shown: TrainingClient, file: string, epochs: number) =>
  fromConversations(new URL(`./data/${file}`, import.meta.url).pathname).pipe(
    toDatums(renderer),
    repeatEpochs({ epochs }),
    batch({ size: 4 }),
    train(shown, { loss: 'cross_entropy', adam: { learningRate: 1e-2 } }),
  );

// One model knows a kind and a rude answer; the other has seen four comparisons.
await Promise.all([
  lastValueFrom(show(trainer, 'greetings.jsonl', 20)),
  lastValueFrom(show(judge, 'kinder.jsonl', 40)),
]);
const kinder = comparison<string>({
  sampler: await judge.saveWeightsAndGetSamplingClient(),
  renderer,
  criteria: 'The kinder one.',
  question: ([a, b]) => `A: ${a!.split('<')[0]} B: ${b!.split('<')[0]} Kinder?`,
  samplingParams: { maxTokens: 8, temperature: 0 },
});
const agent = singleTurn<string>({
  renderer,
  prompt: (question) => question,
  // Nothing is paid for this; it is only counted.
  reward: ({ text }) => ({ reward: 0, metrics: { kind: text.includes('thank') ? 1 : 0 } }),
  samplingParams: { maxTokens: 24 },
});
const options = { group: 8, groupsPerBatch: 2, adam: { learningRate: 2e-3 }, groupReward: pairwise(kinder) };
const questions = fromArray(['How are you?', 'How are you?']).pipe(repeatEpochs({ epochs: 6 }));
await questions.pipe(reinforce(trainer, agent, options)).forEach(({ index, metrics }) => {
  console.log(`step ${index + 1}: ${(100 * metrics['env/all/kind']!).toFixed(0)} % are kind`);
});
await close();
