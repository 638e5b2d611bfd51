// The embedded engine's inner parts, each beside the plain way of doing it, as ratios within one run.
// Run: npm run build && node bench/localEngine.mjs      (REPEATS=<n>, DIST=<folder> measures another build)
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { main, row } from './support/spread.mjs';

const dist = resolve(process.env.DIST ?? 'dist');
const built = (path) => import(pathToFileURL(`${dist}/local/engine/${path}.js`).href);

/** The quickest of several runs, in milliseconds: the others met the machine's other work. */
function quickest(run, runs = 15) {
  let best = Infinity;
  for (let i = 0; i < runs; i++) {
    const from = performance.now();
    run();
    best = Math.min(best, performance.now() - from);
  }
  return best;
}

/** How many times as fast a product is whose weights are packed into panels on the way as one that reads them as they lie. */
async function panelsBesideRows([m, k, n]) {
  const { Heap } = await built('numeric/heap');
  const random = (await built('numeric/random')).createRandom(1);
  const heap = new Heap();
  const noise = (size) => heap.store(Float32Array.from({ length: size }, () => random.normal()));
  const [a, b, c] = [noise(m * k), noise(k * n), heap.alloc(m * n)];
  const times = Math.max(1, Math.round(4e7 / (m * k * n)));
  const repeat = (run) => () => {
    for (let i = 0; i < times; i++) run();
  };
  const split = { count: Math.ceil(n / 8), scratch: 8 * k };
  const plain = quickest(repeat(() => heap.kernels.gemm(m, n, k, a, k, 1, b, n, c, n, false)));
  const panelled = quickest(repeat(() => heap.run('forward', split, m, k, n, a, b, 0, 0, -1, c, n, 0)));
  return { faster: plain / panelled, gflops: (2 * m * n * k * times) / panelled / 1e6 };
}

/** How many times as long drawing a token with top-p takes as drawing from all, and as sorting the vocabulary would. */
async function nucleusBesideAll() {
  const { chooseToken } = await built('sampling/chooseToken');
  const random = (await built('numeric/random')).createRandom(1);
  const rows = Array.from({ length: 512 }, () => Float32Array.from({ length: 264 }, () => 3 * random.normal()));
  const draw = (choice) => quickest(() => rows.forEach((each) => chooseToken(each, choice, random)));
  const all = draw({ temperature: 1, topK: -1, topP: 1 });
  const sorted = quickest(() => rows.forEach((each) => Array.from(each.keys()).sort((x, y) => each[y] - each[x])));
  const nucleus = draw({ temperature: 1, topK: -1, topP: 0.9 });
  return { besideAll: nucleus / all, besideSorting: nucleus / sorted };
}

/** How many times as long a checkpoint of 17.6 MB takes to write and to read as to copy. */
async function filesBesideCopies() {
  const { decodeSafetensors, encodeSafetensors } = await built('files/safetensors');
  const tensor = (i) => [`tensor.${i}`, { shape: [220_000], data: new Float32Array(220_000).fill(i) }];
  const tensors = Object.fromEntries(Array.from({ length: 20 }, (_, i) => tensor(i)));
  const file = encodeSafetensors(tensors);
  const copy = quickest(() => file.slice());
  return {
    written: quickest(() => encodeSafetensors(tensors)) / copy,
    read: quickest(() => decodeSafetensors(file)) / copy,
  };
}

const times = async (count, measure) => {
  const measured = [];
  for (let i = 0; i < count; i++) measured.push(await measure());
  return (name) => measured.map((each) => each[name]);
};

export async function measureLocalEngine({ repeats = Number(process.env.REPEATS ?? 3) } = {}) {
  const many = await times(repeats, () => panelsBesideRows([256, 576, 1536]));
  const one = await times(repeats, () => panelsBesideRows([1, 576, 1536]));
  const small = await times(repeats, () => panelsBesideRows([256, 96, 240]));
  const draws = await times(repeats, nucleusBesideAll);
  const files = await times(repeats, filesBesideCopies);
  return [
    row('weights in panels, 256×576×1536', '× as fast as in rows', many('faster'), { atLeast: 1.25 }),
    row('weights in panels, 256×576×1536', 'GFLOP/s', many('gflops')),
    row('weights in panels, one row', 'GFLOP/s', one('gflops'), { atLeast: 6.3 }),
    row('weights in panels, one row', '× as fast as in rows', one('faster')),
    row('weights in panels, 256×96×240', '× as fast as in rows', small('faster')),
    row('drawing a token with top-p 0.9', '× the time of sorting the vocabulary', draws('besideSorting'), {
      atMost: 0.5,
    }),
    row('drawing a token with top-p 0.9', '× the time of drawing from all', draws('besideAll')),
    row('a checkpoint of 17.6 MB, written', '× the time of a copy', files('written'), { atMost: 2 }),
    row('a checkpoint of 17.6 MB, read', '× the time of a copy', files('read')),
  ];
}

await main(import.meta.url, measureLocalEngine);
