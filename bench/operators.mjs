// What our operators cost per item beside RxJS's own, measured in one run: each pair takes turns, the median counts.
// Run: npm run build && node bench/operators.mjs      (DIST=<folder> measures another build)
import { concatMap, from, mergeMap, of, range, timer } from 'rxjs';
import { pathToFileURL } from 'node:url';
import { resolve } from 'node:path';

const dist = resolve(process.env.DIST ?? 'dist');
const { concatMapAhead, mergeMapWeighted } = await import(pathToFileURL(`${dist}/operators/index.js`).href);

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

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

async function compare(name, items, theirs, ours) {
  const times = { theirs: [], ours: [] };
  for (let round = 0; round < ROUNDS + 5; round++) {
    // The first rounds warm the compiler up; the order changes so that neither always pays for the other's garbage.
    for (const side of round % 2 === 0 ? ['theirs', 'ours'] : ['ours', 'theirs']) {
      const time = await run(side === 'ours' ? ours() : theirs(), items);
      if (round >= 5) times[side].push(time);
    }
  }
  const [theirNs, ourNs] = [median(times.theirs), median(times.ours)];
  const ratio = ourNs / theirNs;
  console.log(
    `${name.padEnd(58)} ${theirNs.toFixed(0).padStart(7)} ns ${ourNs.toFixed(0).padStart(7)} ns ${ratio.toFixed(2).padStart(6)}×`,
  );
  return { name, theirNs, ourNs, ratio };
}

console.log(`${'per item'.padEnd(58)} ${'RxJS'.padStart(10)} ${'ours'.padStart(10)} ${'ratio'.padStart(7)}`);
const N = 100_000;
const soon = (value) => Promise.resolve(value);
const weight = () => 1;
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
];

const slow = results.filter(({ ratio }) => ratio > LIMIT);
console.log(slow.length === 0 ? `all within ${LIMIT}×` : `above ${LIMIT}×: ${slow.map(({ name }) => name).join('; ')}`);
process.exitCode = slow.length === 0 ? 0 : 1;
