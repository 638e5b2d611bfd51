// Training from a Redis stream: each row is acknowledged after its optimizer step, when a checkpoint holds it.
// Needs a Redis server at REDIS_URL, by default redis://127.0.0.1:6379.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { concatMap, firstValueFrom, from, map, take, tap, toArray } from 'rxjs';
import { batch, checkpointEvery, toDatums, train } from 'tinker-rx/operators';
import { metricsLog } from 'tinker-rx/sinks';
import { resumeFrom } from 'tinker-rx/sources';
import { connect } from './connect.js';
import { acknowledgements, fromRedisStream, openRedis } from './redisRows.js';

const { service, baseModel, close } = await connect();
const redis = await openRedis(process.env['REDIS_URL']);
const [place, folder] = [{ stream: `rows-${process.pid}`, group: 'trainers' }, mkdtempSync(`${tmpdir()}/redis-`)];
await redis.xGroupCreate(place.stream, place.group, '0', { MKSTREAM: true });
for (let row = 1; row <= 24; row++)
  await redis.xAdd(place.stream, '*', { prompt: `Is this row ${row}?`, completion: 'Yes, it is.' });

async function run(steps: number): Promise<string> {
  const resume = await firstValueFrom(resumeFrom(folder));
  const trainer = await (resume.checkpoint === undefined
    ? service.createLoraTrainingClient({ baseModel, rank: 8, seed: 1 })
    : service.createTrainingClientFromStateWithOptimizer(resume.checkpoint.statePath));
  const renderer = await trainer.getRenderer();
  const { remember, acknowledge } = acknowledgements(redis, place, resume.batches);
  let first: string | undefined;
  const trained = fromRedisStream(redis, place).pipe(
    tap(({ message }) => (first ??= message['prompt'])),
    batch({ size: 4 }),
    remember,
    concatMap((entries) => from(entries.map(({ message }) => message)).pipe(toDatums(renderer), toArray())),
    map((data, index) => ({ data, position: resume.batches + index, marks: [] })),
    checkpointEvery({ steps: 2 }),
    train(trainer, { loss: 'cross_entropy', adam: { learningRate: 1e-3 } }),
    metricsLog(folder),
    acknowledge,
  );
  await trained.pipe(take(steps)).forEach(() => {});
  return `steps ${resume.steps + 1} to ${resume.steps + steps}, from "${first}" on`;
}

console.log(`the first run stops: ${await run(3)}`);
console.log(`the second resumes: ${await run(4)}`);
console.log(`${(await redis.xPending(place.stream, place.group)).pending} of 24 rows are not acknowledged`);
await Promise.all([redis.del(place.stream), close()]).finally(() => redis.destroy());
