// A sweep: several learning rates at once, each on a model of its own. They share the service's cycles.
import { forkJoin, from, last, lastValueFrom, map, mergeMap, switchMap, tap } from 'rxjs';
import { batch, repeatEpochs, toDatums, train } from 'tinker-rx/operators';
import { fromConversations } from 'tinker-rx/sources';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const questions = fromConversations(new URL('./data/questions.jsonl', import.meta.url).pathname);

const runs = [1e-4, 1e-3, 1e-2].map((learningRate) =>
  from(service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 })).pipe(
    mergeMap((trainer) => trainer.getRenderer().pipe(map((renderer) => ({ trainer, renderer })))),
    switchMap(({ trainer, renderer }) =>
      questions.pipe(
        toDatums(renderer),
        repeatEpochs({ epochs: 20 }),
        batch({ size: 20 }),
        train(trainer, { loss: 'cross_entropy', adam: { learningRate } }),
      ),
    ),
    tap(({ index, loss }) => index === 0 && console.log(`rate ${learningRate} begins at ${loss.toFixed(2)} nats`)),
    last(),
    map(({ loss }) => ({ learningRate, loss })),
  ),
);
const results = await lastValueFrom(forkJoin(runs));
for (const { learningRate, loss } of results) console.log(`rate ${learningRate} ends at ${loss.toFixed(2)} nats`);
const best = results.reduce((a, b) => (b.loss < a.loss ? b : a));
console.log(`best: ${best.learningRate}`);
await close();
