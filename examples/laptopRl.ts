// GRPO on a real language model on this machine: answers of short words are rewarded. MODEL is a folder, a .gguf file or a repository of the hub.
import { from } from 'rxjs';
import { repeatEpochs } from 'tinker-rx/operators';
import { reinforce, singleTurn } from 'tinker-rx/rl';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });

/** The share of words with at most four letters. */
function shortWords(text: string): number {
  const words = text.match(/[a-z']+/gi) ?? [];
  return words.filter((word) => word.length <= 4).length / Math.max(1, words.length);
}

const agent = singleTurn({
  renderer: await trainer.getRenderer(),
  prompt: (topic: string) => `Tell me about ${topic}.`,
  reward: ({ text }: { text: string }) => shortWords(text),
  samplingParams: { maxTokens: 20, seed: 1 },
});
const topics = from(['the sea', 'winter', 'bread', 'the moon']);
const learning = reinforce(trainer, agent, { group: 8, groupsPerBatch: 4, adam: { learningRate: 1e-3 } });
await topics.pipe(repeatEpochs({ epochs: 6 }), learning).forEach(({ index, reward }) => {
  console.log(`step ${index + 1}: ${(100 * reward).toFixed(0)} % of the words are short`);
});
await close();
