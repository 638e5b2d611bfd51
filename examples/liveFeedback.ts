// Live feedback: fifty clients post at once which answer they liked, and a model is trained on it as it comes.
import { setTimeout } from 'node:timers/promises';
import { map, take } from 'rxjs';
import { dpo } from 'tinker-rx/losses';
import { batch, toPairs, trainPreferences } from 'tinker-rx/operators';
import { fromHttp, toPreference } from 'tinker-rx/sources';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const reference = await service.createSamplingClient({ baseModel });
const [clients, answers] = [50, new Map<number, number>()];

/** A client of the product: posts what its user liked, and comes again as long as it is told to wait. */
async function rate(url: string, user: number): Promise<void> {
  const body = JSON.stringify({ prompt: `I am user ${user}.`, chosen: 'Welcome, user!', rejected: 'Who?' });
  const { status, headers } = await fetch(url, { method: 'POST', body });
  answers.set(status, (answers.get(status) ?? 0) + 1);
  if (status !== 503) return;
  await setTimeout(1000 * Number(headers.get('retry-after')));
  return rate(url, user);
}

let all: Promise<unknown> = Promise.resolve();
const onListening = (url: string) => {
  all = Promise.all(Array.from({ length: clients }, (_, user) => rate(url, user)));
};
let trained = 0;
await fromHttp({ port: 0, path: '/feedback', schema: toPreference, onListening })
  .pipe(
    take(clients),
    toPairs(await trainer.getRenderer()),
    batch({ size: 5 }),
    map((pairs) => pairs.flat()),
    trainPreferences(trainer, { loss: dpo({ beta: 0.1 }), reference, adam: { learningRate: 2e-3 } }),
  )
  .forEach(({ index, datums, metrics: { accuracy } }) => {
    trained += datums / 2;
    console.log(`step ${index + 1}: ${datums / 2} preferences, accuracy ${accuracy!.toFixed(2)}`);
  });
await all;
console.log(`${answers.get(202)} accepted, ${trained} trained on; told to wait ${answers.get(503) ?? 0} times`);
await close();
