// 2,000 samples that wait on a server which holds every poll for 5 s: the share of a core that this takes, over a window of
// 20 s once all have been sent. Run: npm run build && node bench/waiting.mjs
import { runApart, withServer } from './support/apart.mjs';
import { main, row } from './support/spread.mjs';

const SAMPLES = 2000;
const HOLD_MS = 5000;
const WINDOW_SECONDS = 20;

export const measureWaiting = () =>
  withServer({ neverReady: HOLD_MS }, async (origin) => {
    const { share } = await runApart('./waitRun.mjs', { origin, samples: SAMPLES, windowSeconds: WINDOW_SECONDS });
    return [row('2,000 samples waiting', '% of a core', [100 * share], { atMost: 5 })];
  });

await main(import.meta.url, measureWaiting);
