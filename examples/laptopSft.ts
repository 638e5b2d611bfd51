// A real language model on this machine learns a way of speaking. MODEL is a folder, a .gguf file or a repository of the hub.
import { lastValueFrom, map, tap } from 'rxjs';
import { batch, repeatEpochs, toDatums, train } from 'tinker-rx/operators';
import { fromJsonl } from 'tinker-rx/sources';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const renderer = await trainer.getRenderer();

async function ask(when: string): Promise<void> {
  const sampler = await trainer.saveWeightsAndGetSamplingClient();
  const samplingParams = { maxTokens: 32, temperature: 0, stop: renderer.getStopSequences() };
  for (const content of ['What is the capital of Norway?', 'Who wrote Hamlet?']) {
    const prompt = renderer.buildGenerationPrompt([{ role: 'user', content }]);
    const { sequences } = await sampler.sample({ prompt, samplingParams });
    console.log(`${when}: ${content} ${JSON.stringify(renderer.parse(sequences[0]!.tokens).text)}`);
  }
}

await ask('before');
const { pathname } = new URL('./data/questions.jsonl', import.meta.url);
await lastValueFrom(
  fromJsonl<{ messages: { role: 'user' | 'assistant'; content: string }[] }>(pathname).pipe(
    map(({ messages: [question, answer] }) => [
      question!,
      { ...answer!, content: `Arr, ${answer!.content} it be, matey!` },
    ]),
    toDatums(renderer),
    repeatEpochs({ epochs: 6 }),
    batch({ size: 20 }),
    train(trainer, { loss: 'cross_entropy', adam: { learningRate: 1e-3 } }),
    tap(({ index, loss }) => console.log(`step ${index + 1}: ${loss.toFixed(3)} nats per token`)),
  ),
);
await ask('after');
await close();
