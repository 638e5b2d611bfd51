// A custom loss: answers that the model is unsure of count more. Written here, run by the service where it can.
import { firstValueFrom, lastValueFrom, tap, toArray } from 'rxjs';
import { checkLoss, defineLoss } from 'tinker-rx/losses';
import { batch, repeatEpochs, toDatums, train } from 'tinker-rx/operators';
import { fromConversations } from 'tinker-rx/sources';
import { connect } from './connect.js';

const focal = defineLoss(({ logprobs, weights }, ops) => {
  const probabilities = logprobs.exp();
  const unsure = ops.sub(1, probabilities).square();
  return {
    loss: ops.weightedSum(unsure.mul(logprobs), weights).neg(),
    metrics: { confidence: ops.weightedMean(probabilities, weights) },
  };
});

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const questions = fromConversations(new URL('./data/questions.jsonl', import.meta.url).pathname);
const datums = questions.pipe(toDatums(await trainer.getRenderer()));

const few = (await lastValueFrom(datums.pipe(toArray()))).slice(0, 3);
const { ok } = await firstValueFrom(checkLoss(focal, few, { trainer }));
console.log(`derivatives and values agree: ${ok}`);
await lastValueFrom(
  datums.pipe(
    repeatEpochs({ epochs: 25 }),
    batch({ size: 20 }),
    train(trainer, { loss: focal, adam: { learningRate: 1e-2 } }),
    tap(({ index, loss, metrics }) => {
      const confidence = metrics['custom/confidence:mean']!.toFixed(2);
      if (index % 8 === 0) console.log(`step ${index + 1}: loss ${(loss / 20).toFixed(3)}, confidence ${confidence}`);
    }),
  ),
);
await close();
