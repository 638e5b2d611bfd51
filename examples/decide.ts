// Decisions: which label a text gets, and how sure the model is. One request per text, trained on 200 rows.
import { lastValueFrom, of, skip, take } from 'rxjs';
import { decisions, summarize } from 'tinker-rx/evals';
import { batch, decide, repeatEpochs, toDecisions, train } from 'tinker-rx/operators';
import { fromJsonl } from 'tinker-rx/sources';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const renderer = await trainer.getRenderer();
const labels = ['billing', 'fault', 'other'];
const rows = fromJsonl(new URL('./data/tickets.jsonl', import.meta.url).pathname);

const measure = async (when: string) => {
  const sampler = await trainer.saveWeightsAndGetSamplingClient();
  const measured = rows.pipe(skip(200), decisions({ sampler, renderer, labels }), summarize());
  const { accuracy, calibrationError, thresholds } = (await lastValueFrom(measured)).decisions!;
  console.log(`${when}: accuracy ${accuracy.toFixed(2)}, calibration error ${calibrationError.toFixed(3)}`);
  return { sampler, thresholds };
};
await measure('before');
const batches = rows.pipe(
  take(200),
  toDecisions({ renderer, labels }),
  repeatEpochs({ epochs: 4 }),
  batch({ size: 20 }),
);
await lastValueFrom(batches.pipe(train(trainer, { loss: 'cross_entropy', adam: { learningRate: 3e-3 } })));
const { sampler, thresholds } = await measure('after');
for (const { threshold, accuracy, coverage } of thresholds.slice(-2))
  console.log(`confidence from ${threshold} on: ${accuracy.toFixed(2)} right, ${coverage.toFixed(2)} of all`);

const decided = await lastValueFrom(of('Please refund the map').pipe(decide(sampler, { renderer, labels })));
console.log(`${decided.item}: ${decided.label}, ${decided.confidence.toFixed(2)}`);
await close();
