// On-policy distillation: a small model answers, and a larger one says of each token how likely it finds it.
import { from } from 'rxjs';
import { linear, repeatEpochs } from 'tinker-rx/operators';
import { distill } from 'tinker-rx/rl';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const teacher = await service.createSamplingClient({ baseModel: process.env['TEACHER'] ?? 'tinker-rx/small' });

const questions = ['What color is the sky?', 'What is the capital of France?', 'What do bees make?', 'How are you?'];
const learning = distill<string>(trainer, {
  teacher,
  renderer: await trainer.getRenderer(),
  ...{
    group: 16,
    groupsPerBatch: 4,
    samplingParams: { maxTokens: 24 },
    adam: { learningRate: linear(1e-3, { steps: 12 }) },
  },
});
await from(questions)
  .pipe(repeatEpochs({ epochs: 12 }), learning)
  .forEach(({ index, metrics }) => {
    if (index === 0 || index % 4 === 3)
      console.log(`step ${index + 1}: ${metrics['env/all/teacher_kl']!.toFixed(3)} nats per token apart`);
  });
await close();
