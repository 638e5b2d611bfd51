// Did it get better? Evaluates a model before and after training on some facts, and compares the two example by example.
import { lastValueFrom, toArray } from 'rxjs';
import { answers, compareEvals, evaluate, exact, summaryOf, trackCost } from 'tinker-rx/evals';
import { batch, repeatEpochs, toDatums, train } from 'tinker-rx/operators';
import { fromArray, fromJsonl } from 'tinker-rx/sources';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const cost$ = trackCost(service.events$, { model: baseModel });
let tokens = 0;
cost$.subscribe((cost) => (tokens = cost.tokens));
const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16, seed: 1 });
const renderer = await trainer.getRenderer();
const file = new URL('./data/facts.jsonl', import.meta.url).pathname;
const facts = await lastValueFrom(fromJsonl<{ question: string; answer: string }>(file).pipe(toArray()));
const measure = async () => {
  const sampler = await trainer.saveWeightsAndGetSamplingClient();
  const options = { sampler, scorers: [exact()], samples: 4, samplingParams: { maxTokens: 16 } };
  return lastValueFrom(fromArray(facts).pipe(evaluate(answers({ renderer }), options), toArray()));
};
const before = await measure();
const chat = ({ question, answer }: (typeof facts)[number]) => ({
  messages: [
    { role: 'user', content: question },
    { role: 'assistant', content: answer },
  ],
});
const batches = fromArray(facts.map(chat)).pipe(toDatums(renderer), batch({ size: 8 }), repeatEpochs({ epochs: 10 }));
await lastValueFrom(batches.pipe(train(trainer, { loss: 'cross_entropy', adam: { learningRate: 3e-3 } })));
const after = await measure();

for (const [when, records] of Object.entries({ before, after })) {
  const { mean, low, high } = summaryOf(records).score;
  console.log(`${when}: ${mean.toFixed(2)} right (${low.toFixed(2)} to ${high.toFixed(2)})`);
}
const { improved, regressed, same, verdict } = compareEvals(before, after);
console.log(`${improved} improved, ${regressed} regressed, ${same} the same: ${verdict}`);
console.log(`${tokens} tokens`);
await close();
