// The embedded engine's inner parts, each beside the plain way of doing it, as ratios within one run.
// Run: npm run build && node bench/localEngine.mjs      (DIST=<folder> measures another build)
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const dist = resolve(process.env.DIST ?? 'dist');
const built = (path) => import(pathToFileURL(`${dist}/local/engine/${path}.js`).href);
const { Heap } = await built('numeric/heap');
const { packPanels, panelFloats } = await built('numeric/kernels');
const { chooseToken } = await built('sampling/chooseToken');
const { createRandom } = await built('numeric/random');
const { decodeSafetensors, encodeSafetensors } = await built('files/safetensors');

/** The quickest of several runs, in milliseconds: the others met the machine's other work. */
function quickest(run, repeats = 15) {
  let best = Infinity;
  for (let i = 0; i < repeats; i++) {
    const from = performance.now();
    run();
    best = Math.min(best, performance.now() - from);
  }
  return best;
}

const random = createRandom(1);
for (const [m, k, n] of [
  [256, 576, 1536],
  [1, 576, 1536],
  [256, 96, 240],
  [1, 96, 240],
]) {
  const heap = new Heap();
  const noise = (size) => heap.store(Float32Array.from({ length: size }, () => random.normal()));
  const [a, b, c] = [noise(m * k), noise(k * n), heap.alloc(m * n)];
  const panels = heap.alloc(panelFloats(k, n));
  packPanels(heap.floats, b, k, n, n, 1, panels);
  const times = Math.max(1, Math.round(4e7 / (m * k * n)));
  const repeat = (run) => () => {
    for (let i = 0; i < times; i++) run();
  };
  const plain = quickest(repeat(() => heap.kernels.gemm(m, n, k, a, k, 1, b, n, c, n, false)));
  const panelled = quickest(repeat(() => heap.kernels.gemmPanels(m, n, k, a, k, panels, c, n, false)));
  const speed = (ms) => ((2 * m * n * k * times) / ms / 1e6).toFixed(1);
  console.log(
    `${m}×${k}×${n}: rows ${speed(plain)} GFLOP/s, panels ${speed(panelled)} GFLOP/s, ${(plain / panelled).toFixed(2)}×`,
  );
}

const rows = Array.from({ length: 512 }, () => Float32Array.from({ length: 264 }, () => 3 * random.normal()));
const draw = (choice) => quickest(() => rows.forEach((row) => chooseToken(row, choice, random)));
const all = draw({ temperature: 1, topK: -1, topP: 1 });
const nucleus = draw({ temperature: 1, topK: -1, topP: 0.9 });
console.log(`drawing a token with top-p 0.9: ${(nucleus / all).toFixed(2)}× the time of drawing from all`);

const tensors = Object.fromEntries(
  Array.from({ length: 20 }, (_, i) => [`tensor.${i}`, { shape: [220_000], data: new Float32Array(220_000).fill(i) }]),
);
const file = encodeSafetensors(tensors);
const copy = quickest(() => file.slice());
const encode = quickest(() => encodeSafetensors(tensors));
const decode = quickest(() => decodeSafetensors(file));
const megabytes = (file.length / 1e6).toFixed(1);
console.log(
  `safetensors of ${megabytes} MB: written in ${(encode / copy).toFixed(1)}×, read in ${(decode / copy).toFixed(1)}× the time of a plain copy (${encode.toFixed(1)} and ${decode.toFixed(1)} ms)`,
);
