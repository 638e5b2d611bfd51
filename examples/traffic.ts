// From traffic to training: a product's calls are recorded, users rate them, and a small model learns what they liked.
import { lastValueFrom, map, toArray } from 'rxjs';
import { answers, compareEvals, evaluate, exact } from 'tinker-rx/evals';
import { batch, repeatEpochs, toDatums, train } from 'tinker-rx/operators';
import { recordCalls, serveSampler } from 'tinker-rx/serve';
import { fromJsonl, fromRecorded } from 'tinker-rx/sources';
import { connect } from './connect.js';

const { service, baseModel, close } = await connect();
const facts = fromJsonl<{ question: string; answer: string }>(new URL('./data/facts.jsonl', import.meta.url).pathname);
const open = (seed: number) => service.createLoraTrainingClient({ baseModel, rank: 16, seed });
const [large, small] = [await open(1), await open(2)];
const renderer = await small.getRenderer();
const learn = (trainer: typeof small, rows: typeof chats) =>
  lastValueFrom(
    rows.pipe(toDatums(renderer), batch({ size: 8 }), repeatEpochs({ epochs: 12 }), train(trainer, options)),
  );
const options = { loss: 'cross_entropy', adam: { learningRate: 5e-3 } } as const;

// The product: a model that knows the facts, behind a gateway that records. Any other upstream: serveUpstream.
const chats = facts.pipe(map(({ question, answer }): unknown => ({ prompt: question, completion: answer })));
await learn(large, chats);
const file = `${process.env['TMPDIR'] ?? '/tmp'}/calls-${process.pid}.jsonl`;
const gateway = await serveSampler(await large.saveWeightsAndGetSamplingClient(), { record: recordCalls(file) });
const post = async (path: string, body: object) => {
  const headers = { authorization: `Bearer ${gateway.apiKey}` };
  const reply = await fetch(gateway.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  return (await reply.json()) as { id: string; choices: [{ message: { content: string } }] };
};
for (const { question, answer } of await lastValueFrom(facts.pipe(toArray()))) {
  const messages = [{ role: 'user', content: question }];
  const reply = await post('/v1/chat/completions', { messages, temperature: 0, max_tokens: 16 });
  await post('/feedback', { id: reply.id, rating: reply.choices[0].message.content === answer ? 'up' : 'down' });
}
await gateway.close();

const asked = { scorers: [exact()], samplingParams: { maxTokens: 16, temperature: 0 } };
const tasks = fromRecorded(file, { as: 'tasks', minRating: 1 });
const measure = async (sampler = small.saveWeightsAndGetSamplingClient()) =>
  lastValueFrom(tasks.pipe(evaluate(answers({ renderer }), { ...asked, sampler: await sampler }), toArray()));
const before = await measure();
await learn(small, fromRecorded(file, { minRating: 1 }));
const { examples, improved, regressed, verdict } = compareEvals(before, await measure());
console.log(`${examples} liked answers: ${improved} improved, ${regressed} regressed: ${verdict}`);
await close();
