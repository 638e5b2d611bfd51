// A sweep: three trainers with different learning rates, fed by one stream. They share the service's cycles.
import { lastValueFrom, type Observable, toArray } from 'rxjs';
import type { Datum } from 'tinker-rx';
import { batch, partition, repeatEpochs, toDatums, train } from 'tinker-rx/operators';
import { fromConversations } from 'tinker-rx/sources';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const questions = fromConversations(new URL('./data/questions.jsonl', import.meta.url).pathname);
const rates = ['0.0001', '0.001', '0.01'];
const clients = await Promise.all(rates.map(() => service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 })));

const trainers = rates.map((rate, place) => {
  const options = { loss: 'cross_entropy', adam: { learningRate: Number(rate) } } as const;
  return [rate, (each: Observable<Datum>) => each.pipe(batch({ size: 20 }), train(clients[place]!, options))] as const;
});
const steps = await lastValueFrom(
  questions.pipe(
    toDatums(await clients[0]!.getRenderer()),
    repeatEpochs({ epochs: 60 }),
    // Each epoch, of twenty questions, goes to the next trainer.
    partition((_, place) => rates[Math.floor(place / 20) % 3]!, Object.fromEntries(trainers), { buffer: 20 }),
    toArray(),
  ),
);
const ends = rates.map((rate) => {
  const losses = steps.filter(({ pipeline }) => pipeline === rate).map(({ value }) => value.loss);
  console.log(
    `rate ${rate}: from ${losses[0]!.toFixed(2)} to ${losses.at(-1)!.toFixed(2)} nats in ${losses.length} steps`,
  );
  return losses.at(-1)!;
});
console.log(`best: ${rates[ends.indexOf(Math.min(...ends))]}`);
await close();
