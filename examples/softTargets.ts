// Off-policy distillation: a larger model writes answers, and a small one learns its likeliest tokens at every position.
import { bufferCount, from, map } from 'rxjs';
import { datumFromTokensWeights } from 'tinker-rx/chat';
import { softTargetsForward } from 'tinker-rx/losses';
import { batch, repeatEpochs, sampleFrom, train, withSoftTargets } from 'tinker-rx/operators';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const renderer = await trainer.getRenderer();
const teacher = await service.createSamplingClient({ baseModel: process.env['TEACHER'] ?? 'tinker-rx/small' });
const stop = renderer.getStopSequences();

const questions = ['What color is the sky?', 'What is the capital of France?', 'What do bees make?', 'How are you?'];
await from(questions)
  .pipe(
    map((content) => renderer.buildGenerationPrompt([{ role: 'user', content }])),
    repeatEpochs({ epochs: 24 }),
    sampleFrom(teacher, { samplingParams: { maxTokens: 24, stop, seed: 1 } }),
    map(({ item, response }) => {
      const [prompt, answer] = [[...item.toInts()], [...response.sequences[0]!.tokens]];
      const weights = [...prompt.map(() => 0), ...answer.map(() => 1)];
      return datumFromTokensWeights([...prompt, ...answer], weights, { reduction: 'none' });
    }),
    batch({ size: 4 }),
    withSoftTargets(teacher, { topK: 8 }),
    train(trainer, { loss: softTargetsForward(), adam: { learningRate: 3e-3 } }),
    bufferCount(6),
  )
  .forEach((steps) => {
    const apart = steps.reduce((sum, { loss }) => sum + loss / 4, 0) / steps.length;
    console.log(`step ${steps.at(-1)!.index + 1}: ${apart.toFixed(2)} nats per answer apart`);
  });
await close();
