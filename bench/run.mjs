// Runs every benchmark that has a bar, one after the other, prints each value with its spread over repeats, and writes
// bench/results.json. Needs `npm run build` first. `node bench/run.mjs growth waiting` runs those two only.
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { measureDecoding } from './decoding.mjs';
import { benchEncoding } from './encoding.mjs';
import { measureForwardBackward } from './forwardBackward.mjs';
import { measureGrowth } from './growth.mjs';
import { measureImporting } from './importing.mjs';
import { measureLocalEngine } from './localEngine.mjs';
import { measureNeighbours } from './neighbours.mjs';
import { benchServing } from './serving.mjs';
import { measureSamples } from './samples.mjs';
import { printed, row } from './support/spread.mjs';
import { measureWaiting } from './waiting.mjs';

const benches = {
  importing: measureImporting,
  decoding: measureDecoding,
  encoding: () => [
    row('a training request as protobuf', 'MB/s', [benchEncoding().megabytesPerSecond], { atLeast: 300 }),
  ],
  forwardBackward: measureForwardBackward,
  samples: measureSamples,
  waiting: measureWaiting,
  serving: async () => [
    row('the gateway: rate', 'of the sampler alone', [(await benchServing()).ratio], { atLeast: 0.8 }),
  ],
  neighbours: measureNeighbours,
  localEngine: measureLocalEngine,
  growth: measureGrowth,
};

const file = new URL('./results.json', import.meta.url);
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in benches));
if (unknown.length > 0) throw new Error(`no benchmark is called ${unknown.join(', ')}`);

// A partial run replaces its own parts, and any two may run at once; each part says how loaded the machine was.
let results = wanted.length === 0 ? {} : read();
for (const [name, measure] of Object.entries(benches)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const loadBefore = loadavg()[0];
  const rows = await measure();
  for (const each of rows) console.log(printed(each));
  const part = { node: process.version, cores: cpus().length, loadBefore, rows };
  results = { ...(wanted.length === 0 ? results : read()), [name]: part };
  writeFileSync(file, `${JSON.stringify(results, undefined, 2)}\n`);
}
const measured = Object.values(results).flatMap(({ rows }) => rows);
process.exitCode = measured.some(({ met }) => met === false) ? 1 : 0;

function read() {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return {};
  }
}
