// Samples per second and CPU: 20,000 called at once over plain HTTP, as in `Promise.all(prompts.map((prompt) => sampler.sample(…)))`,
// beside raw undici; 5,000 with 128 in flight over TLS, where HTTP/2 is spoken as at the hosted service, beside node:http2 by hand; and
// 500 samples of the Python SDK over each, which would take minutes for more. Every run is a process of its own, the peers in turn.
// Run: npm run build && node bench/samples.mjs      (REPEATS=<n>, PYTHON=<a Python with tinker>)
import { runApart, withServer } from './support/apart.mjs';
import { notMeasured, python } from './support/python.mjs';
import { main, row } from './support/spread.mjs';

const PYTHON_SAMPLES = 500;
const PROMPT_TOKENS = 512;
const CASES = [
  {
    name: '20,000 samples at once, plain HTTP',
    settings: {},
    form: 'at-once',
    samples: 20_000,
    beside: 'raw undici',
    bars: { rate: 0.7, cpu: 1.5 },
  },
  {
    name: '5,000 samples, HTTP/2 over TLS',
    settings: { tls: true },
    form: 'workers',
    samples: 5000,
    beside: 'node:http2 by hand',
    bars: { rate: 0.65, cpu: 1.6 },
  },
  // Without a bar: the operator, the poll that serves a whole session, and long prompts.
  { name: '5,000 samples through sampleFrom', settings: {}, form: 'sampleFrom', samples: 5000, beside: 'raw undici' },
  {
    name: '5,000 samples with the session poller',
    settings: { sessionPoller: true },
    form: 'workers',
    samples: 5000,
    beside: 'raw undici',
  },
  {
    name: '5,000 samples of 8,000-token prompts',
    settings: {},
    form: 'workers',
    samples: 5000,
    beside: 'raw undici',
    promptTokens: 8000,
  },
];

export async function measureSamples({ repeats = Number(process.env.REPEATS ?? 3) } = {}) {
  const rows = [];
  for (const each of CASES) rows.push(...(await withServer(each.settings, (origin) => measure(origin, each, repeats))));
  return rows;
}

async function measure(origin, { name, form, samples, beside, bars, promptTokens = PROMPT_TOKENS }, repeats) {
  const [rates, cpus, perSecond, rawPerSecond] = [[], [], [], []];
  for (let repeat = 0; repeat < repeats; repeat++) {
    const job = { origin, samples, promptTokens };
    const raw = await runApart('./sampleRun.mjs', {
      ...job,
      peer: 'raw',
      form: form === 'sampleFrom' ? 'workers' : form,
    });
    const ours = await runApart('./sampleRun.mjs', { ...job, peer: 'ours', form });
    rates.push(raw.seconds / ours.seconds);
    cpus.push(ours.cpuSeconds / raw.cpuSeconds);
    perSecond.push(samples / ours.seconds);
    rawPerSecond.push(samples / raw.seconds);
  }
  const rows = [
    row(`${name}: rate`, `of ${beside}`, rates, bars && { atLeast: bars.rate }),
    row(`${name}: CPU`, `× ${beside}`, cpus, bars && { atMost: bars.cpu }),
    row(`${name}: rate`, 'samples/s', perSecond),
  ];
  if (bars === undefined) return rows;
  const what = `${name}, beside Python`;
  if (python === undefined) return [...rows, notMeasured(what)];
  const job = { origin, samples: PYTHON_SAMPLES, promptTokens: PROMPT_TOKENS };
  const { samplesPerSecond } = await runApart('./python_sampling.py', job, { program: python });
  const faster = (rates) => rates.map((rate) => rate / samplesPerSecond);
  return [
    ...rows,
    row(what, '× as many per second', faster(perSecond), { atLeast: 15 }),
    // What any client over that library could reach at best.
    row(`${what}: ${beside}`, '× as many per second', faster(rawPerSecond)),
  ];
}

await main(import.meta.url, measureSamples);
