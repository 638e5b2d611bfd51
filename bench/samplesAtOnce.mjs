// 20,000 samples called at once, as in `Promise.all(prompts.map((prompt) => sampler.sample(…)))`, beside raw undici. Each run
// is a process of its own, the peers in turn; then 500 samples of the Python SDK, which would take minutes for 20,000.
// Run: npm run build && node bench/samplesAtOnce.mjs      (REPEATS=<n>, PYTHON=<a Python with tinker>)
import { runApart, withServer } from './support/apart.mjs';
import { notMeasured, python } from './support/python.mjs';
import { main, row } from './support/spread.mjs';

const SAMPLES = 20_000;
const PYTHON_SAMPLES = 500;
const PROMPT_TOKENS = 512;

export function measureSamplesAtOnce({ repeats = Number(process.env.REPEATS ?? 3) } = {}) {
  return withServer({}, async (origin) => {
    const [rates, cpus, resident, waiting, perSecond] = [[], [], [], [], []];
    const run = (peer) =>
      runApart('./sampleRun.mjs', { origin, peer, form: 'at-once', samples: SAMPLES, promptTokens: PROMPT_TOKENS });
    for (let repeat = 0; repeat < repeats; repeat++) {
      const raw = await run('raw');
      const ours = await run('ours');
      rates.push(raw.seconds / ours.seconds);
      cpus.push(ours.cpuSeconds / raw.cpuSeconds);
      resident.push(ours.residentMb);
      perSecond.push(SAMPLES / ours.seconds);
      const bytes = await runApart(
        './waitingRun.mjs',
        { origin, samples: 5000, promptTokens: PROMPT_TOKENS },
        { nodeOptions: ['--expose-gc'] },
      );
      waiting.push(bytes.bytesPerSample / 1000);
    }
    return [
      row('20,000 samples at once: rate', 'of raw undici', rates, { atLeast: 0.8 }),
      row('20,000 samples at once: CPU', '× raw undici', cpus, { atMost: 1.3 }),
      row('20,000 samples at once: most resident', 'MB', resident),
      row('a waiting sample, its copy of 512 tokens included', 'kB', waiting, { atMost: 6 }),
      await besidePython(origin, perSecond),
    ];
  });
}

async function besidePython(origin, perSecond) {
  const what = 'samples at once, beside Python';
  if (python === undefined) return notMeasured(what);
  const job = { origin, samples: PYTHON_SAMPLES, promptTokens: PROMPT_TOKENS };
  const { samplesPerSecond } = await runApart('./python_sampling.py', job, { program: python });
  return row(
    what,
    '× as many per second',
    perSecond.map((ours) => ours / samplesPerSecond),
  );
}

await main(import.meta.url, measureSamplesAtOnce);
