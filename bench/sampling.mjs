// Samples per second and CPU per sample of this client and of raw undici making the same two calls, in one run, both with
// as many samples under way at a time. `node bench/sampling.mjs cold` leaves out the warm-up: what a short program sees.
import { withServer } from './support/apart.mjs';
import { rawUndici, SAMPLED_TOKENS, thisClient } from './support/samplers.mjs';

const SAMPLES = 5000;
const SLICE = 250;
const WARM_UP_SLICES = 20;
const PROMPT_TOKENS = 512;
const CONNECTIONS = 128;

export const benchSampling = ({ warmUpSlices = WARM_UP_SLICES } = {}) =>
  withServer({}, (origin) => compare(origin, warmUpSlices));

async function compare(origin, warmUpSlices) {
  const [raw, ours] = [rawUndici(origin, PROMPT_TOKENS), await thisClient(origin, PROMPT_TOKENS)];
  try {
    const [r, o] = [nothing(), nothing()];
    // Turn and turn about in short slices, so that whatever else the machine does meets both alike.
    for (let slice = -warmUpSlices; slice < SAMPLES / SLICE; slice++) {
      const [a, b] = [await measure(raw.sample), await measure(ours.sample)];
      if (slice < 0) continue;
      add(r, a);
      add(o, b);
    }
    console.log(`raw undici  ${perSecond(r)} samples/s  ${cpu(r)} µs CPU a sample`);
    console.log(`tinker-rx   ${perSecond(o)} samples/s  ${cpu(o)} µs CPU a sample`);
    const ratio = r.seconds / o.seconds;
    const cpuRatio = o.cpuMicros / r.cpuMicros;
    console.log(
      `ratio       ${(ratio * 100).toFixed(0)} % of raw throughput, ${(cpuRatio * 100).toFixed(0)} % of its CPU`,
    );
    return { ratio };
  } finally {
    await Promise.all([raw.close(), ours.close()]);
  }
}
const nothing = () => ({ seconds: 0, cpuMicros: 0 });
const add = (sum, { seconds, cpuMicros }) => {
  sum.seconds += seconds;
  sum.cpuMicros += cpuMicros;
};
const perSecond = ({ seconds }) => (SAMPLES / seconds).toFixed(0).padStart(6);
const cpu = ({ cpuMicros }) => (cpuMicros / SAMPLES).toFixed(0).padStart(5);

/** A slice of samples, as many under way at a time as there are connections. */
async function measure(sample) {
  const start = performance.now();
  const before = process.cpuUsage();
  let next = 0;
  let tokens = 0;
  const worker = async () => {
    while (next < SLICE) {
      next++;
      const sampled = await sample();
      tokens += sampled;
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  const { user, system } = process.cpuUsage(before);
  if (tokens !== SLICE * SAMPLED_TOKENS) throw new Error(`expected ${SLICE * SAMPLED_TOKENS} tokens, got ${tokens}`);
  return { seconds: (performance.now() - start) / 1000, cpuMicros: user + system };
}

if (process.argv[1] === new URL(import.meta.url).pathname)
  await benchSampling(process.argv[2] === 'cold' ? { warmUpSlices: 0 } : {});
