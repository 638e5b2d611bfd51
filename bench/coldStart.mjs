// 5,000 samples from a cold start, beside raw undici making the same two calls: one by one with 128 in flight, through
// `sampleFrom`, with the session poller, and with prompts of 8,000 tokens. Each run is a process of its own.
// Run: npm run build && node bench/coldStart.mjs      (REPEATS=<n>)
import { runApart, withServer } from './support/apart.mjs';
import { main, row } from './support/spread.mjs';

const SAMPLES = 5000;
const CASES = [
  { name: '', form: 'workers', promptTokens: 512, settings: {} },
  { name: ' through sampleFrom', form: 'sampleFrom', promptTokens: 512, settings: {} },
  { name: ' with the session poller', form: 'workers', promptTokens: 512, settings: { sessionPoller: true } },
  { name: ' with 8,000-token prompts', form: 'workers', promptTokens: 8000, settings: {} },
];

export async function measureColdStart({ repeats = Number(process.env.REPEATS ?? 3) } = {}) {
  const rows = [];
  for (const { name, form, promptTokens, settings } of CASES) {
    await withServer(settings, async (origin) => {
      const job = { origin, samples: SAMPLES, promptTokens };
      const [rates, cpus] = [[], []];
      for (let repeat = 0; repeat < repeats; repeat++) {
        const raw = await runApart('./sampleRun.mjs', { ...job, peer: 'raw', form: 'workers' });
        const ours = await runApart('./sampleRun.mjs', { ...job, peer: 'ours', form });
        rates.push(raw.seconds / ours.seconds);
        cpus.push(ours.cpuSeconds / raw.cpuSeconds);
      }
      rows.push(row(`5,000 samples from a cold start${name}: rate`, 'of raw undici', rates, { atLeast: 0.8 }));
      rows.push(row(`5,000 samples from a cold start${name}: CPU`, '× raw undici', cpus));
    });
  }
  return rows;
}

await main(import.meta.url, measureColdStart);
