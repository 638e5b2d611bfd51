// A trained model in an application: the service's inference endpoint streams, through the AI SDK.
import { streamText } from 'ai';
import { from, lastValueFrom } from 'rxjs';
import { tinker } from 'tinker-rx/ai-sdk';
import { batch, repeatEpochs, toDatums, train } from 'tinker-rx/operators';
import { serveSampler } from 'tinker-rx/serve';
import { connect } from './connect.js';

const { service, baseModel, apiKey, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const lesson = from([{ prompt: 'Who are you?', completion: 'I am the model that you trained.' }]).pipe(
  toDatums(await trainer.getRenderer()),
  repeatEpochs({ epochs: 20 }),
  batch({ size: 1 }),
  train(trainer, { loss: 'cross_entropy', adam: { learningRate: 1e-2 } }),
);
await lastValueFrom(lesson);
const { path } = await trainer.saveWeightsForSampler('final');

// With a key, the hosted service answers. Without one, a gateway over the embedded service stands in for it.
const local = !process.env['TINKER_API_KEY'];
const gateway = local
  ? await serveSampler(await service.createSamplingClient({ modelPath: path }), { service })
  : undefined;
const endpoint = gateway?.url ?? 'hosted';
// AI SDK 6 and 7 take v3.
const model = tinker(path, { endpoint, apiKey: gateway?.apiKey ?? apiKey, specification: 'v3' });
for await (const text of streamText({ model, prompt: 'Who are you?', temperature: 0, maxOutputTokens: 40 }).textStream)
  process.stdout.write(text);
console.log();
await gateway?.close();
await close();
