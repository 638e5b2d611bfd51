// 2,000 samples that wait on a server which holds every poll for 5 s: the share of a core that this takes, over a window of
// 20 s once all have been sent, beside raw undici waiting for as many. Run: npm run build && node bench/waiting.mjs      (REPEATS=<n>)
import { runApart, withServer } from './support/apart.mjs';
import { main, row } from './support/spread.mjs';

const SAMPLES = 2000;
const HOLD_MS = 5000;
const WINDOW_SECONDS = 20;

export const measureWaiting = ({ repeats = Number(process.env.REPEATS ?? 2) } = {}) =>
  withServer({ neverReady: HOLD_MS }, async (origin) => {
    const [shares, ratios] = [[], []];
    for (let repeat = 0; repeat < repeats; repeat++) {
      const job = { origin, samples: SAMPLES, windowSeconds: WINDOW_SECONDS };
      const ours = await runApart('./waitRun.mjs', job);
      const raw = await runApart('./rawWaitRun.mjs', job);
      shares.push(100 * ours.share);
      ratios.push(ours.share / raw.share);
    }
    return [
      row('2,000 samples waiting', '% of a core', shares, { atMost: 5 }),
      row('2,000 samples waiting: CPU', '× raw undici', ratios),
    ];
  });

await main(import.meta.url, measureWaiting);
