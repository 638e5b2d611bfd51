// Preferences: two answers to each question, and the friendlier one preferred. DPO, held to the model it starts from.
import { map } from 'rxjs';
import { dpo } from 'tinker-rx/losses';
import { batch, repeatEpochs, shuffle, toPairs, trainPreferences } from 'tinker-rx/operators';
import { fromPreferences } from 'tinker-rx/sources';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const reference = await service.createSamplingClient({ baseModel });

const pairs = fromPreferences(new URL('./data/preferences.jsonl', import.meta.url).pathname);
await pairs
  .pipe(
    repeatEpochs({ epochs: 8, each: (rows, epoch) => rows.pipe(shuffle({ window: 20, seed: epoch })) }),
    toPairs(await trainer.getRenderer()),
    batch({ size: 10 }),
    map((batched) => batched.flat()),
    trainPreferences(trainer, { loss: dpo({ beta: 0.1 }), reference, adam: { learningRate: 5e-4 } }),
  )
  .forEach(({ index, metrics: { dpo_loss: loss, accuracy, margin } }) => {
    if (index % 4 === 0 || index === 15)
      console.log(
        `step ${index + 1}: loss ${loss!.toFixed(3)}, accuracy ${accuracy!.toFixed(2)}, margin ${margin!.toFixed(2)}`,
      );
  });
await close();
