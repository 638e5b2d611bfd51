// Supervised fine-tuning: conversations in a file, a falling loss, checkpoints, and an answer before and after.
import { lastValueFrom, tap } from 'rxjs';
import { batch, checkpointEvery, linear, repeatEpochs, shuffle, toDatums, train } from 'tinker-rx/operators';
import { fromConversations } from 'tinker-rx/sources';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const renderer = await trainer.getRenderer();

async function ask(question: string): Promise<string> {
  const sampler = await trainer.saveWeightsAndGetSamplingClient();
  const prompt = renderer.buildGenerationPrompt([{ role: 'user', content: question }]);
  const stop = renderer.getStopSequences();
  const { sequences } = await sampler.sample({ prompt, samplingParams: { maxTokens: 40, temperature: 0, stop } });
  return JSON.stringify(renderer.parse(sequences[0]!.tokens).message.content);
}

const question = 'What is the capital of France?';
console.log(`before: ${question} ${await ask(question)}`);

const steps = 40;
await lastValueFrom(
  fromConversations(new URL('./data/questions.jsonl', import.meta.url).pathname).pipe(
    toDatums(renderer),
    repeatEpochs({ epochs: steps }),
    shuffle({ window: 20, seed: 1 }),
    batch({ size: 20 }),
    checkpointEvery({ steps: 20 }),
    train(trainer, { loss: 'cross_entropy', adam: { learningRate: linear(1e-2, { steps }) } }),
    tap(({ index, loss, checkpoint }) => {
      if (index % 5 === 4) console.log(`step ${index + 1}: ${loss.toFixed(3)} nats per token`);
      if (checkpoint !== undefined) console.log(`saved ${checkpoint.statePath}`);
    }),
  ),
);
console.log(`after:  ${question} ${await ask(question)}`);
await close();
