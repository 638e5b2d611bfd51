// What our operators cost per item beside RxJS's own, measured in one run: each pair takes turns, the fastest round counts.
// Run: npm run build && node bench/operators.mjs [part of a name]      (DIST=<folder> measures another build)
import {
  bufferCount,
  bufferTime,
  concatMap,
  connect,
  filter,
  from,
  groupBy,
  map,
  merge,
  mergeMap,
  of,
  range,
  retry,
  tap,
  timeout,
  timer,
} from 'rxjs';
import { pathToFileURL } from 'node:url';
import { resolve } from 'node:path';

const dist = resolve(process.env.DIST ?? 'dist');
const {
  anomaly,
  batch,
  batchByWeight,
  broadcast,
  concatMapAhead,
  mergeMapWeighted,
  movingMean,
  named,
  partition,
  plateau,
  retryBackoff,
  slope,
  takeUntilIdle,
} = await import(pathToFileURL(`${dist}/operators/index.js`).href);

const ROUNDS = 15;
const LIMIT = 2;

/** Nanoseconds per item of one run. */
const run = (stream, items) =>
  new Promise((done, fail) => {
    const started = process.hrtime.bigint();
    let seen = 0;
    stream.subscribe({
      next: () => seen++,
      error: fail,
      complete: () => {
        if (seen !== items) fail(new Error(`saw ${seen} of ${items} items`));
        done(Number(process.hrtime.bigint() - started) / items);
      },
    });
  });

async function compare(name, items, theirs, ours) {
  if (!name.includes(process.argv[2] ?? '')) return { name, ratio: 0 };
  const times = { theirs: [], ours: [] };
  for (let round = 0; round < ROUNDS + 5; round++) {
    // The first rounds warm the compiler up; the order changes so that neither always pays for the other's garbage.
    for (const side of round % 2 === 0 ? ['theirs', 'ours'] : ['ours', 'theirs']) {
      const time = await run(side === 'ours' ? ours() : theirs(), items);
      if (round >= 5) times[side].push(time);
    }
  }
  // Other programs only ever make a round slower.
  const [theirNs, ourNs] = [Math.min(...times.theirs), Math.min(...times.ours)];
  const ratio = ourNs / theirNs;
  console.log(
    `${name.padEnd(58)} ${theirNs.toFixed(0).padStart(7)} ns ${ourNs.toFixed(0).padStart(7)} ns ${ratio.toFixed(2).padStart(6)}×`,
  );
  return { name, ratio };
}

console.log(`${'per item'.padEnd(58)} ${'RxJS'.padStart(10)} ${'ours'.padStart(10)} ${'ratio'.padStart(7)}`);
const N = 100_000;
const soon = (value) => Promise.resolve(value);
const weight = () => 1;
const add = (value) => value + 1;
const parity = (value) => (value % 2 === 0 ? 'even' : 'odd');
const tag = (pipeline) => map((value) => ({ pipeline, value: add(value) }));
const mean = (values) => values.reduce((sum, each) => sum + each, 0) / values.length;
const results = [
  await compare(
    'mergeMap / mergeMapWeighted, synchronous inners',
    N,
    () => range(0, N).pipe(mergeMap((v) => of(v))),
    () => range(0, N).pipe(mergeMapWeighted((v) => of(v), { weight, budget: 16 })),
  ),
  await compare(
    'mergeMap(16) / mergeMapWeighted, promises, 16 at once',
    N,
    () => range(0, N).pipe(mergeMap(soon, 16)),
    () => range(0, N).pipe(mergeMapWeighted(soon, { weight, budget: 16, concurrency: 16 })),
  ),
  await compare(
    'mergeMap(256) / mergeMapWeighted, timers, by weight',
    5_000,
    () => range(0, 5_000).pipe(mergeMap(() => timer(0), 256)),
    () => range(0, 5_000).pipe(mergeMapWeighted(() => timer(0), { weight, budget: 255 })),
  ),
  await compare(
    'concatMap / concatMapAhead, synchronous inners',
    N,
    () => range(0, N).pipe(concatMap((v) => of(v))),
    () => range(0, N).pipe(concatMapAhead((v) => of(v), { ahead: 4 })),
  ),
  await compare(
    'concatMap / concatMapAhead ahead 0, promises',
    N,
    () => range(0, N).pipe(concatMap(soon)),
    () => range(0, N).pipe(concatMapAhead(soon, { ahead: 0 })),
  ),
  await compare(
    'concatMap / concatMapAhead ahead 4, promises',
    N,
    () => range(0, N).pipe(concatMap(soon)),
    () => range(0, N).pipe(concatMapAhead(soon, { ahead: 4 })),
  ),
  await compare(
    'concatMap / concatMapAhead, ten values an inner',
    N * 10,
    () => range(0, N).pipe(concatMap(() => from([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]))),
    () => range(0, N).pipe(concatMapAhead(() => from([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), { ahead: 4 })),
  ),
  await compare(
    'bufferCount / batch',
    N / 10,
    () => range(0, N).pipe(bufferCount(10)),
    () => range(0, N).pipe(batch({ size: 10 })),
  ),
  await compare(
    'bufferTime / batch, withinMs',
    N / 10,
    () =>
      range(0, N).pipe(
        bufferTime(60_000, null, 10),
        filter(({ length }) => length > 0),
      ),
    () => range(0, N).pipe(batch({ size: 10, withinMs: 60_000 })),
  ),
  await compare(
    'bufferCount / batchByWeight',
    N / 10,
    () => range(0, N).pipe(bufferCount(10)),
    () => range(0, N).pipe(batchByWeight({ weight, limit: 10 })),
  ),
  await compare(
    'connect and merge / broadcast, two pipelines',
    N * 2,
    () => range(0, N).pipe(connect((shared) => merge(shared.pipe(tag('a')), shared.pipe(tag('b'))))),
    () => range(0, N).pipe(broadcast({ a: map(add), b: map(add) })),
  ),
  await compare(
    'groupBy and mergeMap / partition, two pipelines',
    N,
    () =>
      range(0, N).pipe(
        groupBy(parity),
        mergeMap((group) => group.pipe(tag(group.key))),
      ),
    () => range(0, N).pipe(partition(parity, { even: map(add), odd: map(add) })),
  ),
  await compare(
    'tap before and after / named, nobody watches',
    N,
    () => range(0, N).pipe(tap(add), map(add), tap(add)),
    () => range(0, N).pipe(named('add', map(add))),
  ),
  await compare(
    'retry / retryBackoff',
    N,
    () => range(0, N).pipe(retry({ delay: 1, resetOnSuccess: true })),
    () => range(0, N).pipe(retryBackoff()),
  ),
  await compare(
    'timeout / takeUntilIdle',
    N,
    () => range(0, N).pipe(timeout({ each: 60_000 })),
    () => range(0, N).pipe(takeUntilIdle({ idleMs: 60_000 })),
  ),
  await compare(
    'bufferCount(20, 1) / movingMean',
    N,
    () => range(0, N).pipe(bufferCount(20, 1), map(mean)),
    () => range(0, N).pipe(movingMean({ metric: add })),
  ),
  await compare(
    'bufferCount(20, 1) / slope',
    N - 19,
    () =>
      range(0, N).pipe(
        bufferCount(20, 1),
        filter(({ length }) => length === 20),
        map(mean),
      ),
    () => range(0, N).pipe(slope({ metric: add })),
  ),
  await compare(
    'filter / plateau',
    N - 1,
    () => range(0, N).pipe(filter((v) => v > 0)),
    () => range(0, N).pipe(plateau({ patience: 1, metric: add })),
  ),
  await compare(
    'concatMap / anomaly, all are found',
    N,
    () => range(0, N).pipe(concatMap((value) => of({ value }))),
    () => range(0, N).pipe(anomaly({ above: -1, metric: add })),
  ),
];

const slow = results.filter(({ ratio }) => ratio > LIMIT);
console.log(slow.length === 0 ? `all within ${LIMIT}×` : `above ${LIMIT}×: ${slow.map(({ name }) => name).join('; ')}`);
process.exitCode = slow.length === 0 ? 0 : 1;
